/* The floors of src, which is also the order of reading. */

/**
 * By folder its files, those that are still to come among them. A file imports only from floors above its own
 * and from earlier files of its own.
 */
export const FLOORS: Readonly<Record<string, readonly string[]>> = {
  'verify/base/': ['refusal', 'encoding', 'byte-buffer', 'sealed', 'cache', 'clock', 'events'],
  'verify/request/': ['fields', 'uri'],
  'verify/keys/': ['jwk', 'jwks', 'key-set', 'lookup', 'fetch'],
  'verify/token/': ['compact', 'signature', 'claims', 'verify'],
  'verify/dpop/': ['nonce', 'replay', 'proof'],
  'verify/': ['credentials', 'caller'],
  'gate/': ['path', 'reply', 'challenge', 'guards', 'access', 'front', 'gate'],
  'service/routes/': ['schema', 'body', 'incoming', 'handler-reply', 'inputs', 'pattern', 'route', 'router'],
  'service/http/': [
    'write',
    'exchange',
    'observe',
    'pipeline',
    'responder',
    'connection',
    'batches',
    'request-stream',
    'listener',
  ],
  'options/': ['proxy-tunnel', 'redis-replay', 'cors', 'yaml', 'dot-env', 'resource-metadata'],
  'options/metrics/': ['metrics', 'metrics-listener'],
  'process/settings/': ['entry', 'sources', 'readers', 'table', 'names', 'load'],
  'process/': ['compose', 'host', 'probe', 'report', 'run'],
  'profiles/': ['settings', 'routes'],
  '': ['gatehouse', 'test-issuer', 'testing', 'server'],
};

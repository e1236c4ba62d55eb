/* The rings of src and the shelf, which is also the order of reading. */

/**
 * By folder its files, those that are still to come among them. A file imports only from folders above its own and from
 * earlier files of its own; so a ring imports nothing from the rings around it.
 */
export const FLOORS: Readonly<Record<string, readonly string[]>> = {
  'verify/base/': ['refusal', 'encoding', 'byte-buffer', 'sealed', 'cache', 'clock', 'events'],
  'verify/request/': ['fields', 'uri'],
  'verify/keys/': ['jwk', 'jwks', 'key-set', 'fetch'],
  'verify/token/': ['compact', 'signature', 'claims', 'verify'],
  'verify/dpop/': ['nonce', 'replay', 'proof'],
  'verify/': ['credentials', 'caller'],
  'gate/': [
    'configuration-error',
    'path',
    'reply',
    'challenge',
    'guards',
    'access',
    'traceparent',
    'record',
    'early',
    'observe',
    'identify',
    'replies',
    'gate-request',
    'gate',
  ],
  'service/routes/': [
    'schema',
    'body',
    'incoming',
    'handler-reply',
    'inputs',
    'segments',
    'pattern',
    'route',
    'router',
  ],
  'service/http/': [
    'write',
    'exchange',
    'pipeline',
    'responder',
    'connection',
    'batches',
    'request-stream',
    'listener',
  ],
  'process/settings/': ['entry', 'readers', 'table', 'load', 'sources', 'names'],
  'options/': ['proxy-tunnel', 'redis-replay', 'preflight', 'cors', 'yaml', 'dot-env', 'resource-metadata'],
  'options/metrics/': ['metrics', 'metrics-listener'],
  'process/': ['load-settings', 'log', 'compose', 'gate', 'service', 'probe', 'report', 'run'],
  'profiles/': ['settings', 'routes'],
  '': ['gatehouse', 'gate', 'test-issuer', 'testing', 'server'],
};

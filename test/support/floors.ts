/* The floors of src, which is also the order of reading. */

/**
 * By folder its files, those that are still to come among them. A file imports only from floors above its own
 * and from earlier files of its own.
 */
export const FLOORS: Readonly<Record<string, readonly string[]>> = {
  'base/': ['refusal', 'encoding', 'gathering', 'sealed', 'memory', 'clock', 'events'],
  'request/': ['fields', 'uri', 'path', 'schema', 'body', 'incoming'],
  'keys/': ['jwk', 'jwks', 'key-set', 'lookup', 'tunnel', 'fetch'],
  'token/': ['compact', 'signature', 'claims', 'verify'],
  'sender/': ['credentials', 'dpop-nonce', 'replay', 'replay-resp', 'dpop-proof', 'caller'],
  'reply/': ['reply', 'handler-reply', 'write', 'challenge', 'cors'],
  'routes/': ['guards', 'access', 'takes', 'pattern', 'row', 'router'],
  'settings/': ['entry', 'yaml', 'dot-env', 'sources', 'readers', 'table', 'issuers', 'names', 'load'],
  'service/': [
    'metrics',
    'exchange',
    'observe',
    'resource-metadata',
    'front',
    'pipeline',
    'responder',
    'gate',
    'assemble',
    'connection',
    'batches',
    'request-stream',
    'listener',
    'metrics-listener',
    'host',
    'probe',
    'report',
    'run',
  ],
  'profiles/': ['settings', 'tables'],
  '': ['gatehouse', 'test-issuer', 'testing', 'server'],
};

/* The rings of src and the shelf, in the order of reading. */

/**
 * Files, with their folder. A file imports only from earlier ones, so a ring imports nothing from the rings
 * around it.
 */
export const FLOORS: readonly (readonly [folder: string, names: readonly string[]])[] = [
  [
    'verify/base/',
    ['version', 'refusal', 'encoding', 'byte-buffer', 'sealed', 'option', 'part', 'cache', 'clock', 'events'],
  ],
  ['verify/request/', ['fields', 'path', 'facts', 'uri']],
  ['verify/keys/', ['jwk', 'jwks', 'key-set', 'fetch']],
  ['verify/jws/', ['compact', 'signature']],
  ['verify/token/', ['claims', 'verify']],
  ['verify/dpop/', ['nonce', 'replay', 'proof']],
  ['verify/', ['credentials', 'caller', 'options', 'issuers']],
  ['gate/', ['traceparent']],
  ['gate/replies/', ['reply', 'challenge']],
  ['gate/rules/', ['guards', 'further', 'recent-login', 'access']],
  ['gate/', ['record', 'events', 'tell', 'expect', 'observe', 'decide']],
  ['gate/replies/', ['refusal-replies']],
  ['gate/', ['options', 'checks']],
  ['gate/foreign/', ['verdict', 'request', 'gate']],
  ['gate/', ['create-gate']],
  ['service/fetch/', ['response']],
  ['service/routes/', ['schema', 'body', 'handler-result']],
  ['service/fetch/', ['authorize']],
  ['service/routes/', ['handler-request', 'handler-reply', 'inputs', 'pattern', 'route', 'router']],
  ['service/fetch/', ['bytes', 'mount']],
  ['service/request/', ['exchange']],
  ['service/connection/', ['connection', 'write']],
  ['service/fetch/', ['stream']],
  ['service/request/', ['message', 'pipeline']],
  ['service/fetch/', ['mounts']],
  ['service/request/', ['responder', 'tell-responses']],
  ['service/connection/', ['request-stream', 'listener']],
  ['service/', ['options', 'create-service']],
  ['options/', ['log', 'proxy', 'preflight', 'cors', 'resource-metadata', 'forward-auth']],
  ['options/', ['decisions', 'actors', 'typed-claims']],
  ['options/openapi/', ['access', 'json-schema', 'info', 'details', 'operation', 'openapi']],
  ['options/redis/', ['resp', 'target', 'connection', 'link', 'client', 'replay']],
  ['options/certificates/', ['addresses', 'fields', 'certificates']],
  ['options/metrics/', ['metrics', 'metrics-listener']],
  [
    'settings/',
    [
      'configuration-error',
      'entry',
      'readers',
      'table',
      'parts',
      'sources',
      'names',
      'load',
      'yaml',
      'dot-env',
      'load-settings',
    ],
  ],
  ['process/', ['probe', 'report', 'hooks', 'life', 'run']],
  ['profiles/', ['settings', 'routes']],
  ['testing/', ['test-issuer', 'route-matrix']],
  [
    '',
    [
      'gatehouse',
      'gate',
      'log',
      'redis',
      'proxy',
      'certificates',
      'resource-metadata',
      'cors',
      'metrics',
      'decisions',
      'openapi',
      'testing',
      'server',
    ],
  ],
];

/** The names of a folder's files. */
export const filesIn = (wanted: string): readonly string[] =>
  FLOORS.flatMap(([folder, names]) => (folder === wanted ? names : []));

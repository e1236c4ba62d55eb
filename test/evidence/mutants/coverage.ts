/* Which tests cover which file of src, the most telling first. */

/** `together` run in a worker, `alone` each in a process of its own: they open sockets, or share something with all of a process. */
export interface Coverage { readonly together: readonly string[]; readonly alone: readonly string[] }

const named = (directory: string, ...names: string[]) => names.map((name) => `${directory}/${name}.test.ts`);
const TOKEN = named(
  'token', 'claims', 'compact', 'header', 'key-choice', 'kind', 'signature', 'verify', 'unforgeable', 'mutants', 'order',
);
const TOKEN_ALONE = named('token', 'flaws', 'requests');
const KEY_SET = named('keys', 'key-set', 'waiting', 'retry', 'refresh', 'mutants');
const SENDER = named('sender', 'caller', 'credentials', 'nonce', 'htu', 'mutants', 'proof', 'proof-key', 'replay');
const SENDER_ALONE = named('sender', 'known-keys', 'dpop', 'dpop-nonce', 'dpop-requests');

const SETTINGS: Coverage = { together: named('settings', 'sentences', 'settings', 'rules', 'sources', 'yaml', 'yaml-faults'), alone: named('settings', 'startup') };
const PROFILES: Coverage = { together: [], alone: [...named('profiles', 'a', 'b'), 'requests.test.ts', 'scope-policy.test.ts'] };

/** The first ones, then the others once each. */
const first = (names: readonly string[], ...others: readonly string[]) => [...new Set([...names, ...others])];
const token = (...names: string[]): Coverage => ({ together: first(named('token', ...names), ...TOKEN), alone: TOKEN_ALONE });
const sender = (...names: string[]): Coverage => ({ together: first(named('sender', ...names), ...SENDER), alone: SENDER_ALONE });
/** Proofs are read by the same code as tokens. */
const withProofs = ({ together, alone }: Coverage): Coverage =>
  ({ together: [...together, ...named('sender', 'proof', 'proof-key')], alone });

export const COVERAGE: Readonly<Record<string, Coverage>> = {
  'token/claims.ts': token('claims', 'kind'),
  'token/compact.ts': withProofs(token('compact', 'header')),
  'token/signature.ts': withProofs(token('signature', 'unforgeable')),
  'token/verify.ts': token('header', 'verify', 'mutants'),
  'keys/jwk.ts': {
    together: first(named('keys', 'jwk', 'mutants'), ...named('sender', 'proof-key', 'proof'), ...KEY_SET), alone: named('keys', 'unforeseen'),
  },
  'keys/key-set.ts': { together: first(KEY_SET, ...named('token', 'key-choice')), alone: named('keys', 'outage', 'rotation') },
  'keys/fetch.ts': { together: [], alone: named('keys', 'fetch-mutants', 'fetch', 'fetch-faults', 'certificates') },
  'sender/credentials.ts': sender('credentials'),
  'sender/htu.ts': sender('htu', 'mutants'),
  'sender/nonce.ts': sender('nonce'),
  'sender/replay.ts': sender('mutants', 'replay'),
  'sender/proof.ts': sender('proof', 'proof-key', 'nonce'),
  'sender/caller.ts': sender('caller', 'mutants', 'proof'),
  'guards.ts': { together: ['guards.test.ts'], alone: [] },
  'http/router.ts': { together: ['http/router.test.ts', 'route.test.ts'], alone: [] },
  'http/challenge.ts': { together: ['http/challenge.test.ts'], alone: named('sender', 'dpop-requests') },
  'http/reply.ts': { together: [], alone: ['http/reply.test.ts', ...named('listener', 'body', 'limits', 'pipelining')] },
  'route.ts': { together: ['route.test.ts', 'guards.test.ts', ...named('unforgeable', 'unforgeable')], alone: ['route-matrix.test.ts'] },
  'memory.ts': { together: ['memory.test.ts', ...named('token', 'verify')], alone: named('sender', 'known-keys') },
  'http/cors.ts': { together: [], alone: ['http/cors.test.ts'] },
  'settings/rules.ts': SETTINGS,
  'settings/settings.ts': SETTINGS,
  'settings/yaml.ts': SETTINGS,
  'profiles/a.ts': PROFILES,
  'profiles/b.ts': PROFILES,
  'app.ts': { together: [], alone: ['app.test.ts', 'requests.test.ts', 'readiness.test.ts', 'scope-policy.test.ts', 'http/cors.test.ts', ...named('sender', 'dpop-requests', 'dpop-nonce'), ...named('profiles', 'b'), 'log.test.ts', 'server.test.ts'] },
  'listener.ts': { together: [], alone: [...named('listener', 'batches', 'broken', 'pipelining', 'refusals', 'body', 'end', 'limits'), 'shutdown.test.ts'] },
  'log.ts': { together: [], alone: ['log.test.ts'] },
  'sealed.ts': { together: named('unforgeable', 'unforgeable'), alone: [] },
  'server.ts': { together: [], alone: ['server.test.ts', 'shutdown.test.ts', ...named('settings', 'startup')] },
  'encoding.ts': { together: ['encoding.test.ts', ...TOKEN], alone: [] },
};

/* Which tests cover which file of src, the most telling first. */

/** `together` run in a worker, `alone` each in a process of its own: they open sockets, or share something with all of a process. */
export interface Coverage {
  readonly together: readonly string[];
  readonly alone: readonly string[];
}

const named = (directory: string, ...names: string[]) => names.map((name) => `${directory}/${name}.test.ts`);
const TOKEN = named(
  'token',
  'claims',
  'compact',
  'header',
  'key-choice',
  'kind',
  'signature',
  'verify',
  'unforgeable',
  'mutants',
  'order',
);
const TOKEN_ALONE = named('token', 'flaws', 'requests');
const KEY_SET = named('keys', 'key-set', 'waiting', 'retry', 'refresh', 'mutants');
const SENDER = named(
  'sender',
  'caller',
  'credentials',
  'nonce',
  'htu',
  'mutants',
  'proof',
  'proof-key',
  'replay',
);
const SENDER_ALONE = named('sender', 'known-keys', 'dpop', 'dpop-nonce', 'dpop-requests');

const SETTINGS: Coverage = {
  together: named('settings', 'sentences', 'settings', 'rules', 'sources', 'yaml', 'yaml-faults'),
  alone: named('settings', 'startup'),
};
const PROFILES: Coverage = {
  together: [],
  alone: [...named('profiles', 'a', 'b'), 'service/requests.test.ts', 'routes/scope-policy.test.ts'],
};

/** The first ones, then the others once each. */
const first = (names: readonly string[], ...others: readonly string[]) => [...new Set([...names, ...others])];
const token = (...names: string[]): Coverage => ({
  together: first(named('token', ...names), ...TOKEN),
  alone: TOKEN_ALONE,
});
const sender = (...names: string[]): Coverage => ({
  together: first(named('sender', ...names), ...SENDER),
  alone: SENDER_ALONE,
});
/** Proofs are read by the same code as tokens. */
const withProofs = ({ together, alone }: Coverage): Coverage => ({
  together: [...together, ...named('sender', 'proof', 'proof-key')],
  alone,
});

export const COVERAGE: Readonly<Record<string, Coverage>> = {
  'token/claims.ts': token('claims', 'kind'),
  'token/compact.ts': withProofs(token('compact', 'header')),
  'token/signature.ts': withProofs(token('signature', 'unforgeable')),
  'token/verify.ts': token('header', 'verify', 'mutants'),
  'keys/jwk.ts': {
    together: first(named('keys', 'jwk', 'mutants'), ...named('sender', 'proof-key', 'proof'), ...KEY_SET),
    alone: named('keys', 'unforeseen'),
  },
  'keys/key-set.ts': {
    together: first(KEY_SET, ...named('token', 'key-choice')),
    alone: named('keys', 'outage', 'rotation'),
  },
  'keys/fetch.ts': {
    together: [],
    alone: named('keys', 'fetch-endings', 'fetch-faults', 'fetch'),
  },
  'sender/credentials.ts': sender('credentials'),
  'request/uri.ts': sender('htu', 'mutants'),
  'sender/dpop-nonce.ts': sender('nonce'),
  'sender/replay.ts': sender('mutants', 'replay'),
  'sender/dpop-proof.ts': sender('proof', 'proof-key', 'nonce'),
  'sender/caller.ts': sender('caller', 'mutants', 'proof'),
  'routes/guards.ts': { together: ['routes/guards.test.ts'], alone: [] },
  'routes/router.ts': { together: ['routes/router.test.ts', 'routes/row.test.ts'], alone: [] },
  'reply/challenge.ts': { together: ['reply/challenge.test.ts'], alone: named('sender', 'dpop-requests') },
  'reply/reply.ts': {
    together: [],
    alone: ['reply/reply.test.ts', ...named('listener', 'body', 'limits', 'pipelining')],
  },
  'routes/row.ts': {
    together: ['routes/row.test.ts', 'routes/guards.test.ts', ...named('unforgeable', 'unforgeable')],
    alone: ['routes/route-matrix.test.ts'],
  },
  'base/lru.ts': {
    together: ['base/lru.test.ts', ...named('token', 'verify')],
    alone: named('sender', 'known-keys'),
  },
  'reply/cors.ts': { together: [], alone: ['reply/cors.test.ts'] },
  'settings/readers.ts': SETTINGS,
  'settings/load.ts': SETTINGS,
  'settings/yaml.ts': SETTINGS,
  'profiles/a.ts': PROFILES,
  'profiles/b.ts': PROFILES,
  'service/pipeline.ts': {
    together: [],
    alone: [
      'service/pipeline.test.ts',
      'service/requests.test.ts',
      'service/readiness.test.ts',
      'routes/scope-policy.test.ts',
      'reply/cors.test.ts',
      ...named('sender', 'dpop-requests', 'dpop-nonce'),
      ...named('profiles', 'b'),
      'base/events.test.ts',
      'server.test.ts',
    ],
  },
  'service/listener.ts': {
    together: [],
    alone: [
      ...named('listener', 'batches', 'broken', 'pipelining', 'refusals', 'body', 'end', 'limits'),
      'service/shutdown.test.ts',
    ],
  },
  'service/observe.ts': { together: ['service/observe.test.ts'], alone: [] },
  'base/events.ts': { together: [], alone: ['base/events.test.ts'] },
  'base/sealed.ts': { together: named('unforgeable', 'unforgeable'), alone: [] },
  'server.ts': {
    together: [],
    alone: ['server.test.ts', 'service/shutdown.test.ts', ...named('settings', 'startup')],
  },
  'base/encoding.ts': { together: ['base/encoding.test.ts', ...TOKEN], alone: [] },
};

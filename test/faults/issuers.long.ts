/* The built service with two providers, under load: no response goes to the wrong caller, and faults of one
   provider do not affect callers of the other (docs/several-issuers.md). */
import { strict as assert } from 'node:assert';
import { describe, test, type TestContext } from 'node:test';
import { startProvider, type Provider } from '../idp/provider.ts';
import { getBytes, inTurn, startLoad, type LoadResponse, type Shot } from '../support/load.ts';
import { assertUntroubled, openFixture, type ProcessFixture } from './process-fixture.ts';

interface TwoProviders extends ProcessFixture {
  readonly partner: Provider;
}

async function open(context: TestContext, prepare = async (_: Provider) => {}): Promise<TwoProviders> {
  const partner = await startProvider({ host: '127.0.0.1', audience: 'orders-api' });
  context.after(() => partner.stop());
  await prepare(partner);
  const fixture = await openFixture(context, {
    environment: {
      PROFILE: 'A',
      ISSUERS: 'partner',
      ISSUER_PARTNER_DOMAIN: partner.domain,
      ISSUER_PARTNER_AUDIENCE: partner.audience,
    },
  });
  return { ...fixture, partner };
}

/** Requests of this many callers, and what the response to each must contain. */
function callersOf(provider: Provider, count: number): Map<Shot, object> {
  const { issuer, audience } = provider;
  const callers = Array.from({ length: count }, (_, index) => `${provider.domain} ${index}`);
  return new Map(
    callers.map((sub) => {
      const bytes = getBytes('/api/profile', provider.issue({ sub, scope: sub }));
      return [
        { kind: 'valid', bytes },
        { userId: sub, email: null, scope: sub, issuer, audience },
      ];
    }),
  );
}

/** Tokens that each provider signs in the name of the other. */
const mixedUp = ({ provider, partner }: TwoProviders): Shot[] => [
  {
    kind: 'mixed up',
    bytes: getBytes('/api/profile', provider.issue({ iss: partner.issuer, aud: partner.audience })),
  },
  {
    kind: 'mixed up',
    bytes: getBytes('/api/profile', partner.issue({ iss: provider.issuer, aud: provider.audience })),
  },
];

describe('the process in front of two providers', { timeout: 120_000 }, () => {
  test('answers 10,000 interleaved and pipelined requests with tokens of two issuers, and mixes up none', async (t) => {
    const fixture = await open(t);
    await fixture.service.logged('signing keys loaded', 2);
    const expected = new Map([...callersOf(fixture.provider, 100), ...callersOf(fixture.partner, 100)]);
    const shots = [...expected.keys()];
    // One of each in turn, including those that claim to be from the other.
    const interleaved = shots.slice(0, 100).flatMap((shot, index) => [shot, shots[100 + index]!]);
    const next = inTurn([...interleaved, ...mixedUp(fixture)]);
    let left = 10_000;

    const heed = ({ shot, text }: LoadResponse) => {
      const wanted = expected.get(shot);
      if (wanted !== undefined) assert.deepEqual(JSON.parse(text), wanted);
    };

    const takeNext = () => {
      left -= 1;
      return left < 0 ? undefined : next();
    };

    const load = startLoad({ port: fixture.service.port, connections: 8, depth: 50, next: takeNext, heed });
    await load.ended;
    const { answered, lost } = load.tally;
    assert.deepEqual([answered, lost, load.tally.except('valid 200', 'mixed up 401')], [10_000, 0, {}]);
    assert.ok((load.tally.statuses.get('mixed up 401') ?? 0) > 50);
  });

  for (const fault of ['refuse', 'hang-before-headers'] as const) {
    test(`loses no request with a token of one issuer while the provider of another is down from the start: ${fault}`, async (t) => {
      const { provider, partner, service } = await open(t, (dead) => dead.fault('all', fault));

      const loadOf = (from: Provider) =>
        startLoad({
          port: service.port,
          connections: 4,
          depth: 8,
          pauseMillis: 2,
          next: inTurn([...callersOf(from, 50).keys()]),
        });

      const load = loadOf(provider);
      const dead = loadOf(partner);
      await service.logged('signing keys could not be fetched');
      assert.equal((await service.ask('/readyz')).status, 200);
      const refused = await dead.stop();
      assert.deepEqual([refused.except('valid 503'), refused.lost], [{}, 0]);
      const tally = await load.stop();
      assertUntroubled(tally);
      // None of these has waited for the other provider.
      assert.ok(tally.longestGap < 4_000, `${tally.longestGap} ms`);

      await partner.fault('all', undefined);
      await service.logged('signing keys loaded', 2);
      assert.equal((await service.ask('/api/private', { token: partner.issue() })).status, 200);
    });
  }
});

/* Tokens of several issuers: which issuer's settings and keys apply, and that the others do not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeySet } from '../../../src/verify/keys/key-set.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import type { Issuer } from '../../../src/verify/token/verify.ts';
import { createTokenVerifier, verifiedOf } from '../../../src/verify/token/verify.ts';
import { TestClock } from '../../support/clock.ts';
import {
  AUDIENCE,
  CAPACITIES,
  foreignKey,
  issue,
  ISSUER,
  NOW,
  published,
  RULES,
  signingKey,
} from './issuer.ts';
import { unlessRefused } from '../../support/refused.ts';

const PARTNER = 'https://partner.test/';
const PARTNERS_AUDIENCE = 'orders-api';

/** The partner gives its key the same kid as the first issuer. */
const KID = { kid: signingKey.kid };

interface Partner {
  readonly rules?: Partial<Issuer>;
  /** The key sets to fetch, by the name of their issuer. */
  readonly fetched?: Readonly<Record<string, () => object>>;
  readonly cacheEntries?: number;
}

const clock = new TestClock(NOW * 1000);

/** A verifier for two issuers with fetched keys, and their key sets. */
async function open({ rules = {}, fetched = {}, cacheEntries = 0 }: Partner = {}) {
  clock.set(NOW * 1000);
  const documents: Record<string, () => object> = {
    idp: () => ({ keys: [signingKey.publicJwk] }),
    partner: () => ({ keys: [published(KID, foreignKey.publicJwk)] }),
    ...fetched,
  };
  const fetches: string[] = [];

  const keysOf = (name: string) =>
    new KeySet(
      name,
      async () => {
        fetches.push(name);
        return documents[name]!() as Record<string, unknown>;
      },
      { clock, log: () => {}, count: undefined },
    );

  const partner = { name: 'partner', issuer: PARTNER, audience: [PARTNERS_AUDIENCE], ...rules };
  const issuers: readonly Issuer[] = [
    { ...RULES, keys: keysOf('idp') },
    { ...RULES, ...partner, keys: keysOf('partner') },
  ];
  await Promise.all(issuers.map(({ keys }) => keys.refresh()));
  const verify = createTokenVerifier(issuers, clock, cacheEntries);

  async function verdictOf(token: string): Promise<string> {
    try {
      const verified = unlessRefused(await verify(token));
      return verifiedOf(verified).issuer.name;
    } catch (failure) {
      if (failure instanceof Refused) return failure.refusal.reason;
      throw failure;
    }
  }

  return { verify, verdictOf, issuers, documents, fetches };
}

const partners = (claims = {}, header = {}, key = foreignKey.privateKey) =>
  issue({ iss: PARTNER, aud: PARTNERS_AUDIENCE, ...claims }, { ...KID, ...header }, key);

for (const cacheEntries of CAPACITIES) {
  test(`verifies each token with the keys of the issuer that it claims, though both use the same kid, with a cache of ${cacheEntries} tokens [RFC 8725 §3.8] [D3]`, async () => {
    const { verdictOf } = await open({ cacheEntries });
    for (let sight = 1; sight <= 3; sight += 1) {
      assert.equal(await verdictOf(issue()), 'idp');
      assert.equal(await verdictOf(partners()), 'partner');
      assert.equal(await verdictOf(issue({}, {}, foreignKey.privateKey)), 'signature-mismatch');
      assert.equal(await verdictOf(partners({}, {}, signingKey.privateKey)), 'signature-mismatch');
    }
  });
}

for (const cacheEntries of CAPACITIES) {
  test(`accepts from each issuer only tokens for the audience of that issuer, with a cache of ${cacheEntries} tokens [RFC 7519 §4.1.3] [D11]`, async () => {
    const { verdictOf } = await open({ cacheEntries });
    for (let sight = 1; sight <= 3; sight += 1) {
      assert.equal(await verdictOf(issue({ aud: PARTNERS_AUDIENCE })), 'audience-mismatch');
      assert.equal(await verdictOf(partners({ aud: AUDIENCE })), 'audience-mismatch');
      assert.equal(await verdictOf(partners({ aud: [AUDIENCE, PARTNERS_AUDIENCE] })), 'partner');
    }
  });

  test(`refuses a token once its own issuer has withdrawn the key, whatever the other publishes, with a cache of ${cacheEntries} tokens [D7]`, async () => {
    const { verdictOf, issuers, documents } = await open({ cacheEntries });
    for (let sight = 1; sight <= 3; sight += 1) assert.equal(await verdictOf(partners()), 'partner');

    // The first issuer now publishes that key, and the partner has withdrawn it.
    const lost = published(KID, foreignKey.publicJwk);
    documents.idp = () => ({ keys: [lost] });
    documents.partner = () => ({ keys: [published({ kid: 'new' }, signingKey.publicJwk)] });
    await Promise.all(issuers.map(({ keys }) => keys.refresh()));
    assert.equal(await verdictOf(partners()), 'key-unknown');
    assert.equal(await verdictOf(issue({}, {}, foreignKey.privateKey)), 'idp');
  });

  test(`checks a cached token against the times in its own claims, with a cache of ${cacheEntries} tokens [D7]`, async () => {
    const { verdictOf } = await open({ cacheEntries });
    for (let sight = 1; sight <= 3; sight += 1) assert.equal(await verdictOf(partners()), 'partner');

    clock.set((NOW + 60) * 1000);
    assert.equal(await verdictOf(partners()), 'expired');
  });
}

/** Values that resemble a trusted issuer. */
const STRANGERS: readonly (readonly [what: string, iss: unknown])[] = [
  ['another issuer', 'https://evil.test/'],
  ['an issuer in another case', 'https://PARTNER.test/'],
  ['an issuer without its slash', PARTNER.slice(0, -1)],
  ['the configured name of an issuer', 'partner'],
  ['an empty string', ''],
  ['a name that every object has', 'constructor'],
  ['a list with an issuer in it', [PARTNER]],
  ['a number', 1],
  ['null', null],
  ['absent', undefined],
];

for (const [what, iss] of STRANGERS) {
  test(`refuses a token whose iss is ${what} before it looks for a key, and fetches nothing [RFC 7519 §4.1.1, D2, D4]`, async () => {
    const { verdictOf, fetches } = await open();
    for (const header of [{}, { kid: 'unknown' }, { kid: undefined }]) {
      assert.equal(await verdictOf(issue({ iss }, header)), 'issuer-mismatch');
      assert.equal(await verdictOf(issue({ iss }, header, foreignKey.privateKey)), 'issuer-mismatch');
    }
    assert.deepEqual(fetches, ['idp', 'partner']);
  });
}

test('checks the header of a token before its issuer', async () => {
  const { verdictOf } = await open();
  const stranger = { iss: 'https://evil.test/' };
  assert.equal(await verdictOf(issue(stranger, { alg: 'none' })), 'algorithm-refused');
  assert.equal(await verdictOf(issue(stranger, { crit: ['x'] })), 'critical-header');
  assert.equal(await verdictOf(issue(stranger, { typ: 'dpop+jwt' })), 'type-refused');
  assert.equal(await verdictOf(issue(stranger, { kid: 1 })), 'key-id-malformed');
});

/** Demands of one issuer that the other does not make. */
const DEMANDS: readonly (readonly [what: string, rules: Partial<Issuer>, reason: string])[] = [
  ['the profile at+jwt', { tokenType: 'at+jwt' }, 'profile-required'],
  ['a claim', { requiredClaims: ['scp'] }, 'claim-required'],
  ['another audience', { audience: ['other'] }, 'audience-mismatch'],
];

for (const [what, rules, reason] of DEMANDS) {
  test(`demands ${what} only of the tokens of the issuer whose settings demand it`, async () => {
    const { verdictOf } = await open({ rules });
    assert.equal(await verdictOf(issue()), 'idp');
    assert.equal(await verdictOf(partners()), reason);
  });
}

test('accepts a token for any audience of its issuer [RFC 7519 §4.1.3]', async () => {
  const { verdictOf } = await open({ rules: { audience: [AUDIENCE, PARTNERS_AUDIENCE] } });
  assert.equal(await verdictOf(partners()), 'partner');
  assert.equal(await verdictOf(partners({ aud: AUDIENCE })), 'partner');
  assert.equal(await verdictOf(partners({ aud: ['x', AUDIENCE] })), 'partner');
  assert.equal(await verdictOf(partners({ aud: `${AUDIENCE} ${PARTNERS_AUDIENCE}` })), 'audience-mismatch');
  assert.equal(await verdictOf(partners({ aud: [] })), 'audience-mismatch');
});

test('fetches only the keys of the claimed issuer for an unknown kid [F1]', async () => {
  const { verdictOf, fetches } = await open();
  assert.equal(await verdictOf(partners({}, { kid: 'unknown' })), 'key-unknown');
  assert.equal(await verdictOf(partners({}, { kid: 'unknown too' })), 'key-unknown');
  assert.deepEqual(fetches, ['idp', 'partner', 'partner']);
  assert.equal(await verdictOf(issue({}, { kid: 'unknown' })), 'key-unknown');
  assert.deepEqual(fetches, ['idp', 'partner', 'partner', 'idp']);
});

test('names in a refusal the issuer whose key was found', async () => {
  const { verify } = await open();

  const found = async (token: string) => {
    const refused = await verify(token);
    assert.ok(refused instanceof Refused);
    return refused.found;
  };

  assert.deepEqual(await found(partners({ exp: 1 })), { ...KID, issuerName: 'partner' });
  assert.deepEqual(await found(issue({ exp: 1 })), { ...KID, issuerName: 'idp' });
  assert.deepEqual(await found(issue({ iss: 'https://evil.test/' })), {});
});

test('with one issuer, checks key and signature before the issuer', async () => {
  const keys = new KeySet('idp', async () => ({ keys: [signingKey.publicJwk] }), {
    clock,
    log: () => {},
    count: undefined,
  });
  await keys.refresh();
  const verify = createTokenVerifier([{ ...RULES, keys }], clock, 0);

  const reasonOf = async (token: string) => {
    try {
      return verifiedOf(unlessRefused(await verify(token))).issuer.issuer;
    } catch (failure) {
      if (!(failure instanceof Refused)) throw failure;
      return failure.refusal.reason;
    }
  };

  const iss = 'https://evil.test/';
  assert.equal(await reasonOf(issue({ iss }, { kid: 'unknown' })), 'key-unknown');
  assert.equal(await reasonOf(issue({ iss }, {}, foreignKey.privateKey)), 'signature-mismatch');
  assert.equal(await reasonOf(issue({ iss })), 'issuer-mismatch');
  assert.equal(await reasonOf(issue()), ISSUER);
});

/* Every refusal of a token over HTTP: status, challenge, body, log line, and no fetch because of it. */
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { after, test } from 'node:test';
import { REFUSALS } from '../../../src/verify/base/refusal.ts';
import type { Provider } from '../../idp/provider.ts';
import { signJws } from '../../idp/tokens.ts';
import { TestClock } from '../../support/clock.ts';
import { startService, type TestService } from '../../support/service.ts';
import { draft, FAULTS, seal, type Draft, type TokenReason } from './faults.ts';
import { AUDIENCE, CAPACITIES, DOMAIN, keySetOf, NOW } from './issuer.ts';

const hash = (text: string) => createHash('sha256').update(text).digest('base64url');

const proofKey = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const { kty, crv, x, y } = proofKey.publicKey.export({ format: 'jwk' });
const thumbprint = hash(JSON.stringify({ crv, kty, x, y }));

let proofs = 0;

function proofFor(token: string): string {
  proofs += 1;
  const header = { typ: 'dpop+jwt', alg: 'ES256', jwk: { kty, crv, x, y } };
  const place = { htm: 'GET', htu: `${AUDIENCE}/api/private` };
  const claims = { jti: String(proofs), ...place, iat: NOW, ath: hash(token) };
  return signJws(header, claims, proofKey.privateKey);
}

/** A valid draft for the scheme: with DPoP it is bound to the key of the proof. */
function draftFor(scheme: 'Bearer' | 'DPoP'): Draft {
  const whole = draft();
  if (scheme === 'DPoP') whole.claims.cnf = { jkt: thumbprint };
  return whole;
}

let fetches = 0;

const fetchKeys = async () => {
  fetches += 1;
  return keySetOf();
};

const provider = { domain: DOMAIN, audience: AUDIENCE } as Provider;
const services = new Map<string, Promise<TestService>>();

after(async () => {
  for (const service of services.values()) await (await service).stop();
});

/** The service with these settings and this size of token cache. */
function serviceFor(
  { rules: { tokenType = 'any', requiredClaims = [] }, environment: more }: Draft,
  cacheEntries: number,
): Promise<TestService> {
  const environment = {
    ...more,
    IDP_TOKEN_TYPE: tokenType,
    IDP_REQUIRED_CLAIMS: requiredClaims.join(','),
    IDP_TOKEN_CACHE_ENTRIES: String(cacheEntries),
    IDP_DPOP_MODE: 'ALLOWED',
    PUBLIC_URL: AUDIENCE,
  };
  const name = JSON.stringify(environment);
  const service =
    services.get(name) ??
    startService({ provider, fetchKeys, environment, clock: new TestClock(NOW * 1000) });
  services.set(name, service);
  return service;
}

function present(service: TestService, whole: Draft, scheme: 'Bearer' | 'DPoP') {
  const token = seal(whole);
  const proof = scheme === 'DPoP' ? { DPoP: proofFor(token) } : {};
  const headers = { Authorization: scheme + whole.space + token, ...proof, ...whole.fields };
  return service.ask('/api/private', { headers });
}

for (const scheme of ['Bearer', 'DPoP'] as const) {
  test(`accepts the token without any fault when it is presented as ${scheme}`, async () => {
    for (const cacheEntries of CAPACITIES) {
      const service = await serviceFor(draftFor(scheme), cacheEntries);
      for (let sight = 1; sight <= 2; sight += 1) {
        assert.equal((await present(service, draftFor(scheme), scheme)).status, 200);
      }
    }
  });
}

for (const reason of Object.keys(FAULTS) as TokenReason[]) {
  const { apply, sender: scheme = 'Bearer' } = FAULTS[reason];

  test(`answers 401 invalid_token with its own sentence when a token has the fault ${reason} [RFC 6750 §3.1]`, async () => {
    const whole = draftFor(scheme);
    apply(whole);
    for (const cacheEntries of CAPACITIES) {
      const service = await serviceFor(whole, cacheEntries);
      const before = fetches;
      for (let sight = 1; sight <= 2; sight += 1) {
        const { status, body, challenges, text } = await present(service, whole, scheme);
        assert.equal(status, 401);
        assert.deepEqual(body, { error: 'invalid_token', message: 'Authentication required' });
        const [bearer, dpop] = challenges;
        assert.equal(challenges.length, 2);
        const error = `error="invalid_token", error_description="${REFUSALS.invalid_token[reason]}"`;
        if (scheme === 'Bearer') assert.equal(bearer, `Bearer realm="api", ${error}`);
        else assert.ok(dpop?.startsWith('DPoP ') && dpop.includes(error), dpop);
        assert.equal((scheme === 'Bearer' ? dpop : bearer)?.includes('error'), false);
        const line = service.logs.at(-1);
        assert.deepEqual([line?.message, line?.reason, line?.status], ['request refused', reason, 401]);
        for (const part of seal(whole).split('.')) {
          assert.equal((text + JSON.stringify(service.logs)).includes(part), false);
        }
      }
      // Only a key identifier that nobody knows is worth a fetch (docs/keys.md), and one is enough for both
      // sights.
      assert.equal(fetches - before, reason === 'key-unknown' ? 1 : 0);
    }
  });
}

/* The settings of docs/fapi.md load, and requests under them get what its table says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseEnv } from 'node:util';
import { REFUSALS } from '../../src/verify/base/refusal.ts';
import { createGate, needs, scope } from '../../src/gatehouse.ts';
import { createTestIssuer, type TestAlgorithm } from '../../src/testing.ts';
import { optionsOf } from '../../src/settings/load-settings.ts';
import { client, otherClient, written, type ClientCertificate } from '../options/certificates-fixture.ts';
import { draftProof, makeProofKey, sealProof, type ProofAlgorithm } from '../support/proof.ts';
import { settingsFrom, type Environment } from '../support/settings.ts';
import { samplesUnder, tableUnder } from './pages.ts';

const PAGE = 'docs/fapi.md';
const [sample = ''] = samplesUnder(PAGE, 'Settings', 'sh');
const environment = parseEnv(sample) as Environment;
const HOST = 'api.test';
const PATH = '/accounts';

/** What the table promises for the requests of a row, by the words in its first cell. */
function promised(words: string): string {
  const [, cell = ''] = tableUnder(PAGE, 'Settings').find(([first = '']) => first.includes(words)) ?? [];
  return cell.replaceAll('`', '');
}

interface Sent {
  readonly algorithm?: TestAlgorithm;
  readonly proof?: ProofAlgorithm;
  readonly claims?: object;
  readonly scheme?: 'DPoP' | 'Bearer';
  /** Instead of the token's own header. */
  readonly header?: object;
}

/**
 * The reason with this fixed sentence. An empty sentence means that the scheme was refused, before any token
 * was read.
 */
function reasonOf(sentence: string): string {
  const all = Object.values(REFUSALS).flatMap((each) => Object.entries(each));
  return all.find(([, other]) => other === sentence && other !== '')?.[0] ?? 'scheme-refused';
}

/** The status, and the reason of a refusal. */
async function verdictOf({ algorithm = 'PS256', proof = 'ES256', claims, scheme = 'DPoP', header }: Sent) {
  const issuer = createTestIssuer({ algorithm });
  const { issuers, dpopAlgorithms, dpopMode } = settingsFrom({
    IDP_DOMAIN: issuer.options.domain,
    IDP_AUDIENCE: issuer.options.audience,
    ...environment,
  });
  const { algorithms, tokenType } = issuers.idp!;
  const lists = { algorithms, tokenType, dpopAlgorithms, dpopMode };
  const gate = createGate({ ...issuer.options, ...lists, log: undefined });
  const key = makeProofKey(proof);
  const usual = { scope: 'accounts', client_id: 'bank', iat: Math.floor(Date.now() / 1000), jti: 'a' };
  const token = issuer.token({ ...usual, cnf: { jkt: key.thumbprint }, ...claims });
  const [, ...rest] = token.split('.');
  const encoded = header && Buffer.from(JSON.stringify(header)).toString('base64url');
  const sent = encoded === undefined ? token : [encoded, ...rest].join('.');
  const uri = `http://${HOST}${PATH}`;
  const draft = draftProof(key, { token: sent, uri, nowSeconds: Math.floor(Date.now() / 1000) });
  const rawHeaders = ['Host', HOST, 'Authorization', `${scheme} ${sent}`, 'DPoP', sealProof(draft)];

  try {
    const verdict = await gate.check({ method: 'GET', url: PATH, rawHeaders }, needs(scope('accounts')));
    if (!verdict.refusal) return '200';

    const challenge = verdict.refusal.headers.find(([name]) => name === 'WWW-Authenticate')?.[1] ?? '';
    const [, sentence = ''] = /error_description="([^"]*)"/.exec(challenge) ?? [];
    return `${verdict.refusal.status} ${reasonOf(sentence)}`;
  } finally {
    gate.close();
  }
}

test('the settings of the page load, allow only PS256, ES256 and EdDSA, and require DPoP', () => {
  const settings = settingsFrom({ IDP_DOMAIN: 'a.test', IDP_AUDIENCE: 'a', ...environment });
  const list = ['PS256', 'ES256', 'EdDSA'];
  assert.deepEqual(settings.issuers.idp?.algorithms, list);
  assert.deepEqual([settings.dpopAlgorithms, settings.dpopMode], [list, 'REQUIRED']);
});

for (const algorithm of ['PS256', 'ES256', 'EdDSA'] as const) {
  test(`accepts a token and a proof signed with ${algorithm} [FAPI 2.0 §5.4.1(1.2)]`, async () => {
    assert.equal(
      await verdictOf({ algorithm, proof: algorithm }),
      promised('signed with PS256, ES256 or EdDSA'),
    );
  });
}

for (const algorithm of ['RS256', 'ES384', 'ES512'] as const) {
  test(`refuses a token signed with ${algorithm} [FAPI 2.0 §5.4.1(1.2)]`, async () => {
    assert.equal(await verdictOf({ algorithm }), promised('whose `alg` is RS256'));
  });

  test(`refuses a proof signed with ${algorithm} [FAPI 2.0 §5.4.1(1.2)]`, async () => {
    assert.equal(await verdictOf({ proof: algorithm }), promised('proof signed with RS256'));
  });
}

for (const alg of ['none', 'HS256']) {
  test(`refuses a token whose header says ${alg} [FAPI 2.0 §5.4.1(1.3)]`, async () => {
    assert.equal(await verdictOf({ header: { alg, typ: 'at+jwt' } }), promised('`none`'));
  });
}

test('refuses a Bearer token [FAPI 2.0 §5.3.4(5)]', async () => {
  assert.equal(await verdictOf({ scheme: 'Bearer' }), promised('sent as `Bearer`'));
});

test('refuses a token that is not bound to a key [FAPI 2.0 §5.3.4(5)]', async () => {
  assert.equal(await verdictOf({ claims: { cnf: {} } }), promised('without `cnf.jkt`'));
});

test('refuses a token that is bound to a certificate [FAPI 2.0 §5.3.4(5), RFC 8705 §3.1]', async () => {
  assert.equal(await verdictOf({ claims: { cnf: { 'x5t#S256': 'a' } } }), promised('bound to a certificate'));
});

const [lines = ''] = samplesUnder(PAGE, 'With certificates', 'sh');
const ownLines = `${sample.replace('IDP_DPOP_MODE=REQUIRED\n', '')}${lines}`;
const PROXY = '10.1.2.3';

interface Held {
  readonly cnf?: object | undefined;
  readonly certificate?: ClientCertificate | undefined;
  readonly scheme?: 'Bearer' | 'DPoP';
  readonly peer?: string;
}

/** The outcome of a request under the settings for certificates. */
async function outcomeOf({ cnf, certificate, scheme = 'Bearer', peer = PROXY }: Held): Promise<string> {
  const issuer = createTestIssuer({ algorithm: 'PS256' });
  const { domain, audience } = issuer.options;
  const settings = settingsFrom({
    IDP_DOMAIN: domain,
    IDP_AUDIENCE: audience,
    ...(parseEnv(ownLines) as Environment),
  });
  const values = await optionsOf(settings);
  const { dpopMode, dpopAlgorithms, algorithms, tokenType, clientCertificates } = values;
  const own = { dpopMode, dpopAlgorithms, algorithms, tokenType, clientCertificates };
  const gate = createGate({ ...issuer.options, ...own, log: undefined });
  const usual = { scope: 'accounts', client_id: 'bank', iat: Math.floor(Date.now() / 1000), jti: 'a' };
  const token = issuer.token({ ...usual, cnf });
  const rawHeaders = ['Host', HOST, 'Authorization', `${scheme} ${token}`];
  if (certificate) rawHeaders.push('X-Client-Cert', written('pem', certificate.der));
  if (scheme === 'DPoP') {
    const proof = { token, uri: `http://${HOST}${PATH}`, nowSeconds: Math.floor(Date.now() / 1000) };
    rawHeaders.push('DPoP', sealProof(draftProof(holder, proof)));
  }

  const socket = { remoteAddress: peer };
  const access = needs(scope('accounts'));
  const { refusal } = await gate.check({ method: 'GET', url: PATH, rawHeaders, socket }, access);
  gate.close();
  const challenges = refusal?.headers.filter(([name]) => name === 'WWW-Authenticate').join() ?? '';
  const [, sentence = ''] = /error_description="([^"]*)"/.exec(challenges) ?? [];
  return refusal === undefined ? '200' : `${refusal.status} ${reasonOf(sentence)}`;
}

const holder = makeProofKey('ES256');
const ofCertificate = { 'x5t#S256': client.thumbprint };
const ofKey = { jkt: holder.thumbprint };

for (const [words, held] of [
  ["bound to the client's certificate", { cnf: ofCertificate, certificate: client }],
  ["bound to another client's certificate", { cnf: ofCertificate, certificate: otherClient }],
  ['in a request without a certificate', { cnf: ofCertificate }],
  ['header from an untrusted address', { cnf: ofCertificate, certificate: client, peer: '192.0.2.1' }],
  ['unbound Bearer token', { certificate: client }],
  ['key-bound token with a valid proof', { cnf: ofKey, scheme: 'DPoP' }],
  ['bound to a key and a certificate', { cnf: { ...ofKey, ...ofCertificate }, scheme: 'DPoP' }],
] as const) {
  test(`gives the response of the page to a request: ${words} [FAPI 2.0 §5.3.4(5), RFC 8705 §3]`, async () => {
    const row = tableUnder(PAGE, 'With certificates').find(([first = '']) => first.includes(words));
    assert.equal(await outcomeOf(held), row?.[1]?.replaceAll('`', ''));
  });
}

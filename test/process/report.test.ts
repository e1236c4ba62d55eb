/* What `--check` says of each failure: the sentence that an operator acts on. */
import { strict as assert } from 'node:assert';
import { test, type TestContext } from 'node:test';
import { check, type Event } from '../../src/process/report.ts';
import { FETCH_ERROR_REASONS, type LogEvent } from '../../src/verify/base/events.ts';

/** The lines of a check whose log had these events, and that asked these issuers. */
async function problemsAfter(
  t: TestContext,
  events: readonly object[],
  issuers: readonly object[] = [],
): Promise<readonly unknown[]> {
  const told = t.mock.method(console, 'error', () => {});
  const service = { issuers, replayStore: {}, close() {} };
  const isGood = await check(service as never, { values: {} } as never, events as readonly Event[]);
  assert.equal(isGood, false);
  return told.mock.calls.map((call) => call.arguments[0]);
}

const failing = (event: LogEvent, reasons: readonly string[], issuer: string) =>
  reasons.map((reason) => ({ event, fields: { issuer, reason } }));

/** In the order of `docs/keys.md`. */
const OF_KEYS: Readonly<Record<string, string>> = {
  timeout: 'the provider did not respond within five seconds; check the network between it and this machine',
  'connection-failed':
    'no connection to the provider; check IDP_DOMAIN, IDP_JWKS_URI, DNS and outbound HTTPS',
  'certificate-refused':
    'the certificate is refused; check its dates, names and the clock, or set IDP_CA_FILE to its authority',
  'token-file-refused':
    'the file contains no token, or cannot be read; check IDP_JWKS_TOKEN_FILE and its permissions',
  'ca-file-refused':
    'the file is not a list of certificates, or cannot be read; check IDP_CA_FILE and its permissions',
  'proxy-refused': 'the proxy refused the tunnel; check its rules and the user in IDP_PROXY',
  'proxy-failed': 'no connection to the proxy; check IDP_PROXY',
  'status-refused':
    'the provider did not respond with 200; check IDP_DOMAIN, IDP_ISSUER, IDP_JWKS_URI, IDP_JWKS_TOKEN_FILE',
  'too-large': 'the provider sent more than 512 KiB; check IDP_JWKS_URI',
  'not-a-json-object': 'the response is not a JSON object in UTF-8; check IDP_DOMAIN and IDP_JWKS_URI',
  'issuer-mismatch': 'the discovery document has another issuer; set IDP_ISSUER to exactly that',
  'address-refused':
    'the provider gives no https: URL for its keys, or one that must not get the token; set IDP_JWKS_URI',
  'not-a-key-set': 'there is no list of keys; check IDP_JWKS_URI, or your own fetchKeys',
  'too-many-keys': 'the key set has more than 100 keys; check IDP_JWKS_URI',
  'no-usable-key': 'no key of the set can be used; check IDP_ALGORITHMS and the keys at the provider',
  unforeseen: 'correct your own fetchKeys or introspect, or report a bug in gatehouse',
};

for (const [issuer, prefix] of [
  ['idp', 'IDP_'],
  ['partner', 'ISSUER_PARTNER_'],
] as const) {
  test(`a check says of each reason what is likely wrong, and names the settings of the issuer ${issuer} [§7]`, async (t) => {
    const event = 'signing keys could not be fetched';
    assert.deepEqual(
      await problemsAfter(t, failing(event, FETCH_ERROR_REASONS, issuer)),
      FETCH_ERROR_REASONS.map((reason) => {
        // There is one proxy for all issuers.
        const advice = OF_KEYS[reason]?.replaceAll('IDP_', prefix).replace(`${prefix}PROXY`, 'IDP_PROXY');
        return `${event}: issuer ${issuer}, ${reason}; ${advice}`;
      }),
    );
  });
}

/** The same where introspection requests differ, and two where they do not. */
const OF_INTROSPECTION: Readonly<Record<string, string | undefined>> = {
  'status-refused': 'the endpoint did not respond with 200; check IDP_INTROSPECTION_URI',
  'too-large': 'the endpoint sent more than 64 KiB; check IDP_INTROSPECTION_URI',
  'not-a-json-object': 'the response is not a JSON object in UTF-8; check IDP_INTROSPECTION_URI',
  'address-refused': 'the provider names no https: URL for introspection; set IDP_INTROSPECTION_URI',
  'client-refused':
    'the endpoint refused this client; check IDP_INTROSPECTION_CLIENT_ID and its secret or key',
  'no-verdict':
    'the response does not say true or false (active); check IDP_INTROSPECTION_URI, or your own introspect',
  active: 'the response calls a random token active; check IDP_INTROSPECTION_URI, or your own introspect',
  timeout: OF_KEYS.timeout,
  'proxy-failed': OF_KEYS['proxy-failed'],
};

/** An issuer whose endpoint has this problem. */
const askedInVain = (reason: string) => ({
  name: 'idp',
  keys: { refresh() {}, close() {} },
  introspect: { probe: async () => ({ problem: { reason } }) },
});

test('a check says what is likely wrong with an introspection endpoint, as of keys where that is the same [§22]', async (t) => {
  const issuers = Object.keys(OF_INTROSPECTION).map(askedInVain);
  assert.deepEqual(
    await problemsAfter(t, [], issuers),
    Object.entries(OF_INTROSPECTION).map(
      ([reason, advice]) => `introspection lost: issuer idp, ${reason}; ${advice}`,
    ),
  );
});

test('a check, which has no log, says the name and frames of what a function of the program throws [§7]', async (t) => {
  const event = 'signing keys could not be fetched';
  const frames = ['file:///app/keys.mjs:9:15', 'node:fs:1:2'];
  const problem = { error: 'RangeError', frames, reason: 'unforeseen', code: '' };
  const asked = { ...askedInVain('unforeseen'), introspect: { probe: async () => ({ problem }) } };
  const failed = { event, fields: { issuer: 'idp', ...problem } };
  const what = `unforeseen (RangeError at ${frames.join(' at ')}); ${OF_KEYS.unforeseen}`;
  assert.deepEqual(await problemsAfter(t, [failed], [asked]), [
    `${event}: issuer idp, ${what}`,
    `introspection lost: issuer idp, ${what}`,
  ]);

  const thrownText = { event, fields: { issuer: 'idp', reason: 'unforeseen', code: '', error: 'string' } };
  assert.deepEqual(await problemsAfter(t, [thrownText]), [
    `${event}: issuer idp, unforeseen (string); ${OF_KEYS.unforeseen}`,
  ]);
});

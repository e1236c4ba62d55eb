/* What an operator reads when the service does not start, word for word: the fault, and what to do about it (contract §2). */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { parseYaml, YamlError } from '../../src/settings/yaml.ts';
import { onlyProblem, problemsOf, REQUIRED, withYaml } from './every-setting.ts';

const DOMAIN = 'IDP_DOMAIN or idp.domain';
const SETTINGS: readonly (readonly [name: string, value: string, problem: string])[] = [
  ['IDP_DOMAIN', 'https://idp.test', `${DOMAIN}: has a scheme; remove "https://" and keep the host name`],
  ['IDP_DOMAIN', 'idp .test', `${DOMAIN}: has white space; remove it`],
  ['IDP_DOMAIN', 'user@idp.test', `${DOMAIN}: has an "@"; remove it and what stands before it`],
  ['IDP_DOMAIN', 'idp.test/tenant', `${DOMAIN}: has a path; remove the "/" and what follows the host name`],
  [
    'IDP_DOMAIN',
    'idp.test:65536',
    `${DOMAIN}: is not a host name with an optional ":port"; write it as the provider shows it`,
  ],
  [
    'IDP_DPOP_NONCE_SECRET',
    'short',
    'IDP_DPOP_NONCE_SECRET or idp.dpopNonceSecret: must have at least 32 characters',
  ],
  ['IDP_CLAIM_NAMESPACE', 'claims', 'IDP_CLAIM_NAMESPACE or idp.claimNamespace: must be a URL prefix'],
  [
    'IDP_DPOP_IAT_OFFSET_SECONDS',
    '1000000001',
    'IDP_DPOP_IAT_OFFSET_SECONDS or idp.dpopIatOffsetSeconds: must be a whole number from 0 to 1000000000',
  ],
  [
    'IDP_DPOP_IAT_LEEWAY_SECONDS',
    '1000000001',
    'IDP_DPOP_IAT_LEEWAY_SECONDS or idp.dpopIatLeewaySeconds: must be a whole number from 0 to 1000000000',
  ],
  [
    'PUBLIC_URL',
    'https://127.1',
    'PUBLIC_URL or api.publicUrl: must have its host and path as URL gives them; write it in its normal form',
  ],
  [
    'CORS_ALLOWED_ORIGINS',
    'https://app.test/',
    'CORS_ALLOWED_ORIGINS or cors.allowedOrigins: must be an origin as browsers send it: ' +
      'scheme, host in lower case, port unless default, no trailing "/"',
  ],
  [
    'SCOPE_POLICY',
    'true',
    'SCOPE_POLICY or api.scopePolicy: belongs to profile A; remove it or set PROFILE=A',
  ],
];
for (const [name, value, problem] of SETTINGS) {
  test(`says of ${name}=${value} what is wrong and what to do`, () =>
    assert.equal(onlyProblem({ environment: { ...REQUIRED, [name]: value } }), problem));
}

test('says of required settings that are missing what to set them to [specification §7 rule 5]', () =>
  assert.deepEqual(problemsOf({}), [
    `${DOMAIN}: the issuer base URL is required; set it to the host name of the identity provider`,
    'IDP_AUDIENCE or idp.audience: the audience is required; set it to the identifier of this API at the provider',
  ]));
test('says of one thing where a list is wanted that its members need quotes', () =>
  assert.equal(
    onlyProblem(withYaml('idp:\n  requiredClaims: 1')),
    'IDP_REQUIRED_CLAIMS or idp.requiredClaims: must be a list of texts; quote them',
  ));
test('shows a question mark for each character that no terminal should get', () =>
  assert.equal(
    onlyProblem(withYaml('idp:\n  "a\\n\u00e9b": 1')),
    'idp.a??b: line 2: is not a setting; correct or remove it',
  ));
test('says of a file why it cannot be read', () =>
  assert.match(
    onlyProblem({ environment: { ...REQUIRED, CONFIG_FILE: 'no.yml' } }),
    /^CONFIG_FILE: \S+no\.yml: cannot be read \(ENOENT\)$/,
  ));

test('reads no file of more than a million characters', () => {
  const long = `# ${'x'.repeat(999_998)}`;
  assert.deepEqual(problemsOf(withYaml(long)), []);
  assert.match(
    onlyProblem(withYaml(`${long}x`)),
    /application\.yml: is longer than a million characters; shorten it$/,
  );
  assert.match(
    onlyProblem({ environment: REQUIRED, files: { '.env': `${long}x` } }),
    /\.env: is longer than a million characters; shorten it$/,
  );
});
test('reads a quoted text that is as long as a file may be', () => {
  const value = 'x'.repeat(999_900);
  assert.deepEqual(
    parseYaml(`a: "${value}"`).map((entry) => entry.value),
    [value],
  );
});

const YAML: readonly (readonly [source: string, problem: string])[] = [
  ['- x', 'line 1: a list item that fits no key'],
  ['a:\n  - [x]', 'line 2: a list inside a list'],
  ['a: 1\n  b: 2', 'line 2: the indentation fits no map; a value ends on its own line'],
  ['  a: 1\nb: 2', 'line 2: the indentation fits no map; a value ends on its own line'],
  ['a: 1\na: 2', 'line 2: a key that has been set before'],
  ['a:\t1', 'line 1: a tab or another character that is not supported; indent and separate with spaces'],
  ['%YAML 1.2', 'line 1: a directive; remove it'],
  ['a: 1\n---', 'line 2: only one document, begun by a bare "---"'],
  ['a', 'line 1: no "key: value"'],
  [': x', 'line 1: a key that is not text; quote it'],
  ['a: "x" y', 'line 1: something after the end of the value'],
  ['a: [x, , y]', 'line 1: a list that is empty at one place or does not end on its line'],
  ['a: [x', 'line 1: a list that does not end on its line'],
  ['a: "x', 'line 1: a quoted text that does not end on its line'],
  ['a: "\\q"', 'line 1: an escape that is not supported'],
  ['a: &x', 'line 1: a form of YAML that is not supported here; quote the text'],
];
for (const [source, message] of YAML) {
  test(`says of the YAML ${JSON.stringify(source)} what is wrong in which line`, () =>
    assert.throws(
      () => parseYaml(source),
      (failure) => failure instanceof YamlError && failure.message === message,
    ));
}

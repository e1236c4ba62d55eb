/* The rules of options that are text: what each accepts, and the problem that says what to change. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { CORS_RULES } from '../../src/options/cors.ts';
import { proxyUrl } from '../../src/options/proxy.ts';
import { RESOURCE_RULES } from '../../src/options/resource-metadata.ts';
import { textWithoutBlanks, type Rule } from '../../src/verify/base/option.ts';
import { ISSUER_RULES, VERIFY_RULES } from '../../src/verify/options.ts';
import { httpsUrl, publicUrl } from '../../src/verify/urls.ts';

const show = (value: unknown) => JSON.stringify(value);

/** The problem of a text; `false` if there is none. */
const faultOf = (rule: Rule, value: string): string | false => rule(value) ?? false;

/** The rule of each member. */
const memberOf =
  (rule: Rule): Rule =>
  (value) =>
    rule([value]);

const host = ISSUER_RULES.domain;
const issuerUrl = ISSUER_RULES.issuer;
const urlPrefix = ISSUER_RULES.claimNamespace;
const secret = VERIFY_RULES.dpopNonceSecret;
const resourceUrl = RESOURCE_RULES.url;
const resourceScope = memberOf(RESOURCE_RULES.scopes);
const origin = memberOf(CORS_RULES.origins);
const methodName = memberOf(CORS_RULES.methods);
const fieldName = memberOf(CORS_RULES.headers);

for (const blank of [' ', '\0', '\t', '\n', '\r', '\u00a0', '\u3000']) {
  test(`refuses a string with ${show(blank)} anywhere in it`, () => {
    for (const value of [`a${blank}b`, `${blank}a`, `a${blank}`, blank]) {
      assert.equal(faultOf(textWithoutBlanks, value), 'is empty, or has white space or a NUL; remove it');
    }
  });
}

test('refuses an empty string', () => {
  assert.equal(faultOf(textWithoutBlanks, ''), 'is empty, or has white space or a NUL; remove it');
});

test('accepts a string without white space', () => {
  for (const value of ['a', 'urn:api:1-é']) assert.equal(faultOf(textWithoutBlanks, value), false);
});

for (const value of [
  'idp.test',
  'localhost',
  'IdP.Example.COM',
  'a-b.test',
  'a_b.test',
  'xn--bcher-kva.test',
  '127.0.0.1',
  '[::1]',
  '[::1]:8443',
  '[2001:DB8::1]',
  'idp.test:1',
  'idp.test:65535',
  'idp.test:443',
  'IDP.test:443',
  'idp.test:8443',
  'idp.test:4430',
  `${'a'.repeat(63)}.test`,
]) {
  test(`accepts ${value} as a host name with an optional port`, () =>
    assert.equal(faultOf(host, value), false));
}

const NOT_A_HOST = 'is not a host name with an optional ":port"; write it as the provider shows it';

const HOST_FAULTS: readonly (readonly [value: string, reason: string])[] = [
  ...[
    ['https://idp.test', 'https://'],
    ['http://idp.test', 'http://'],
    ['HTTPS://idp.test', 'HTTPS://'],
    ['https://idp.test/', 'https://'],
    ['a09+b-c.1://idp.test', 'a09+b-c.1://'],
    ['tcp://10.0.0.1:80', 'tcp://'],
    ['https:idp.test', 'https:'],
    ['http:idp.test', 'http:'],
    ['http:/idp.test', 'http:/'],
    ['ftp:/idp.test', 'ftp:/'],
    ['https://user@idp.test/x y', 'https://'],
  ].map(
    ([value = '', scheme]) => [value, `has a scheme; remove "${scheme}" and keep the host name`] as const,
  ),
  ...[
    'idp.test/',
    'idp.test/realms/x',
    'idp.test/x://y',
    '//idp.test',
    '/idp.test',
    '1://idp.test',
    'idp.test\\x',
    'idp.test:443/',
    'idp.test?x',
    'idp.test#x',
  ].map((value) => [value, 'has a path; remove the "/" and what follows the host name'] as const),
  ...[
    'idp test',
    ' idp.test',
    'idp.test ',
    'idp.test\n',
    'idp.test\t',
    '\u00a0idp.test',
    'user@idp test/x',
  ].map((value) => [value, 'has white space; remove it'] as const),
  ...['user@idp.test', 'user:word@idp.test', '@idp.test', 'idp.test@', 'user@idp.test/x'].map(
    (value) => [value, 'has an "@"; remove it and all before it'] as const,
  ),
  ...[
    'idp.test:65536',
    'idp.test:99999',
    'idp.test:-1',
    'idp.test:+1',
    'idp.test:',
    'idp.test:x',
    'idp.test:0443',
    'idp.test:1e3',
    'idp.test:80:80',
    ':443',
    ':',
  ].map((value) => [value, NOT_A_HOST] as const),
  ...[
    '::1',
    '[::1',
    '::1]',
    '[::g]',
    '[1.2.3.4]',
    '[0:0::1]',
    '[]',
    '[::1]x',
    '127.1',
    '0x7f.1',
    '1.2.3.256',
    '2130706433',
  ].map((value) => [value, NOT_A_HOST] as const),
  ...['idp.test.', 'idp.test.:443', 'bücher.test', 'idp%2etest', 'idp^test', 'idp<test', 'idp|test', '.'].map(
    (value) => [value, NOT_A_HOST] as const,
  ),
  // Not host names either, though the URL parser accepts them: quotes that a container's environment file
  // keeps, lists, patterns.
  ...[
    '"idp.test"',
    "'idp.test'",
    'idp.test,other.test',
    'idp.test;x',
    '*.idp.test',
    'idp..test',
    '.idp.test',
    'idp.test:0',
    '{idp}.test',
    '$IDP.test',
  ].map((value) => [value, NOT_A_HOST] as const),
];

for (const [value, reason] of HOST_FAULTS) {
  test(`refuses ${show(value)} as a host name and says what to change`, () =>
    assert.equal(faultOf(host, value), reason));
}

for (const value of [
  'https://idp.test',
  'https://idp.test/',
  'HTTPS://idp.test/',
  'https://idp.test:8443/a/b',
  'https://[::1]/jwks',
  'https://idp.test/jwks?tenant=1',
]) {
  test(`accepts ${value} as an https URL`, () => assert.equal(faultOf(httpsUrl, value), false));
}

for (const value of [
  'http://idp.test/',
  'ftp://idp.test/',
  'idp.test',
  '/jwks',
  '//idp.test/',
  'https://',
  'https:',
  'https://idp.test:65536/',
  'https://idp.test/#x',
  'https://user@idp.test/',
  'https://user:word@idp.test/',
  'https://a@b@idp.test/',
  'https://idp.test?@evil.test/',
  'https://idp.test/a b',
  ' https://idp.test/',
  'https://idp.test/\n',
  'https://idp.test\\x',
  'httpss://idp.test/',
  'urn:x',
  '*',
  // RFC 9110 §4.2.2: "https" "://" authority; the URL parser takes fewer and more slashes.
  'https:idp.test/',
  'https:/idp.test/',
  'https:///idp.test/',
]) {
  test(`refuses ${show(value)} as an https URL`, () => {
    assert.equal(
      faultOf(httpsUrl, value),
      'must be a URL that begins with https://, without white space, "#", or an "@" before its path',
    );
    assert.match(String(faultOf(issuerUrl, value)), /^must be a URL that begins with https:\/\/,/);
  });
}

for (const value of [
  'https://www.googleapis.com/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com',
  'https://idp.test/?set=a@b',
]) {
  test(`accepts ${value}, whose "@" ends no user information, as an https URL [RFC 3986 §3.2.1]`, () => {
    assert.equal(faultOf(httpsUrl, value), false);
    assert.equal(new URL(value).username, '');
    assert.notEqual(faultOf(issuerUrl, value), false);
  });
}

const NO_URL =
  'must be a URL that begins with https:// or http://, in ASCII, without blanks, braces, "@", "#" or "?"';

test('accepts only a URL prefix without white space as the value of a prefix setting', () => {
  for (const value of ['https://a.test/claims/', 'urn:x:', 'https://a.test/#']) {
    assert.equal(faultOf(urlPrefix, value), false);
  }
  const fault = 'must be the beginning of a URL, such as https://api.example.com/, without white space';
  for (const value of ['https://a.test/b c', ' https://a.test/', 'https://a.test/ ', 'claims/', '']) {
    assert.equal(faultOf(urlPrefix, value), fault);
  }
});

test('accepts a secret of at least 32 characters', () => {
  const long = 'a\n'.repeat(16);
  assert.deepEqual([faultOf(secret, long), faultOf(secret, `${long}b`)], [false, false]);
  assert.equal(faultOf(secret, long.slice(1)), 'must have at least 32 characters');
});

test('accepts a public URL only with http or https', () => {
  for (const value of ['http://api.test/', 'https://api.test/v1']) {
    assert.equal(faultOf(publicUrl, value), false);
  }
  assert.equal(faultOf(publicUrl, 'ftp://api.test/'), NO_URL);
});

test('refuses a public URL that proofs could not be compared with [RFC 9449 §4.3(9)]', () => {
  const others = ['https://api.test/{v}', 'https://api.test/a b', 'https://api.test\n'];
  for (const value of ['https://127.1', 'https://api.test/%zz', 'https://例え.test', ...others]) {
    assert.equal(faultOf(publicUrl, value), NO_URL);
  }
});

const UNFIT =
  'must be https:// (http:// on loopback), with the origin of the public URL, no "=", no "/" after a path';

const RESOURCES: readonly (readonly [url: string, fault?: string])[] = [
  ['https://api.test'],
  ['https://api.test/'],
  ['https://API.test:8443/mcp'],
  ['https://api.test/a%20b/c'],
  ['https://[2001:db8::1]/x'],
  ['http://localhost'],
  ['http://LOCALHOST:3001/mcp'],
  ['http://127.0.0.1:3001/'],
  ['http://[::1]:3001'],
  ['http://127.0.0.2'],
  ['http://127.255.255.254:3001/mcp'],
  ['http://api.localhost'],
  ['http://a-1.b_2.LocalHost:3001/mcp'],
  ['https://api.test/mcp/', UNFIT],
  ['https://api.test//', UNFIT],
  ['https://api.test/mcp/.', UNFIT],
  ['http://localhost/mcp/', UNFIT],
  ['http://api.test', UNFIT],
  ['http://localhost.test', UNFIT],
  ['http://127.0.0.1.example/', UNFIT],
  ['http://localhost.evil', UNFIT],
  ['http://localhost.', UNFIT],
  ['http://evillocalhost', UNFIT],
  ['http://.localhost', UNFIT],
  ['http://a..localhost', UNFIT],
  ['http://126.0.0.1', UNFIT],
  ['http://128.0.0.1', UNFIT],
  ['http://1127.0.0.1.test', UNFIT],
  ['http://0.0.0.0', UNFIT],
  ['http://[::]', UNFIT],
  ['http://[::11]/', UNFIT],
  ['http://[1::1]', UNFIT],
  ['http://[::ffff:7f00:1]', UNFIT],
  ['http://api.test/localhost', UNFIT],
  ['http://api.test/https:', UNFIT],
  ['http://api.test/http://localhost', UNFIT],
  ['http://api.test/https://api.test/v1', UNFIT],
  ['http://127.0.0.256', NO_URL],
  ['http://127.0.1', NO_URL],
  ['https://api.test/scope=x', UNFIT],
  ['https://api.test/scope=', UNFIT],
  ['https://api.test/?', NO_URL],
  ['https://api.test?a', NO_URL],
  ['https://api.test/#', NO_URL],
  ['https://user@api.test/', NO_URL],
  ['https://user:word@api.test', NO_URL],
  ['https://api.test/a b', NO_URL],
  ['https://api.test\\x', NO_URL],
  ['ftp://localhost', NO_URL],
  ['urn:api', NO_URL],
  ['https://', NO_URL],
  ['https://api.test/"x"', NO_URL],
  ['https://api.test/%zz', NO_URL],
  ['https://api.test/ü', NO_URL],
  ['https://127.1', NO_URL],
];

for (const [url, fault] of RESOURCES) {
  test(`${fault === undefined ? 'accepts' : 'refuses'} ${show(url)} as the identifier of a resource [RFC 9728 §1.2, §3.1, RFC 6761 §6.3, G16]`, () => {
    assert.equal(faultOf(resourceUrl, url), fault ?? false);
  });
}

test('accepts scope-tokens as the scopes of a resource [RFC 6749 §3.3]', () => {
  for (const value of ['read', 'read:orders', 'https://api.test/read', 'openid2', '!', '#', '[', ']', '~']) {
    assert.equal(faultOf(resourceScope, value), false);
  }
});

for (const value of ['openid', 'offline_access', 'read write', 'a"b', 'a\\b', 'a\x7f', 'é', 'a\n', '']) {
  test(`refuses ${show(value)} as a scope of a resource [RFC 6749 §3.3]`, () =>
    assert.equal(
      faultOf(resourceScope, value),
      'must be a scope of this API, without white space, \'"\' or "\\"; neither openid nor offline_access',
    ));
}

test('refuses a query in an issuer and in a public URL [OpenID Connect Discovery §3]', () => {
  for (const value of ['https://idp.test/?a=b', 'https://idp.test/?', 'https://idp.test?']) {
    for (const reader of [issuerUrl, publicUrl]) {
      assert.match(
        String(faultOf(reader, value)),
        /^must be a URL .*, without .*"@", "#"(?:, "\?", "\{" or "\}"| or "\?")$/,
      );
    }
    assert.equal(faultOf(httpsUrl, value), false);
  }
  assert.equal(faultOf(issuerUrl, 'https://idp.test/a'), false);
});

for (const value of [
  'https://app.test',
  'http://localhost:5173',
  'https://app.test:8443',
  'http://app.test:443',
  'https://[::1]:1',
  'http://127.0.0.1',
  'capacitor://localhost',
  'tauri://localhost',
  'ionic://localhost:8100',
  'ftp://app.test',
  'https://*.preview.example.com',
  'https://*.app.test:8443',
  'https://*.xn--bcher-kva.example',
  'app+x://*.a.b',
  'app://[::1]:8100',
  'chrome-extension://abcdefghijklmnop',
  'files://app',
  'https://my_app.test',
  'https://~app.test',
]) {
  test(`accepts ${value} as an origin`, () => assert.equal(faultOf(origin, value), false));
}

for (const value of [
  'https://app.test/',
  'https://App.test',
  'HTTPS://app.test',
  'https://app.test:443',
  'http://app.test:80',
  'https://app.test/x',
  'https://app.test?x',
  'https://app.test#',
  'https://user@app.test',
  'app.test',
  'null',
  'file://',
  'file://x',
  'capacitor://Localhost',
  'capacitor://localhost/',
  'capacitor://user@localhost',
  'capacitor://localhost:080',
  'capacitor://localhost:65536',
  'capacitor://',
  'app://.',
  'app://a..b',
  'app://a?b',
  'app://a%62',
  'app://[0:0:0:0:0:0:0:1]',
  'https://.app.test',
  'https://a..test',
  'https://bücher.example',
  'https://a,b.test',
  'https:app.test',
  '',
]) {
  test(`refuses ${show(value)} as an origin`, () =>
    assert.match(String(faultOf(origin, value)), /^must be an origin as browsers send it/));
}

for (const value of [
  '*',
  'https://*',
  'https://*.test',
  'https://*.app.',
  'https://a.*.app.test',
  'https://*.*.app.test',
  'https://a*.app.test',
  'https://*pr.app.test',
  'https://app.test*',
  'https://*.0.0.1',
  'https://*.test.:8443',
  'https://*..app.test',
  'https://*.app.test:443',
  'https://user@*.app.test',
  'https://*.app.test@a.b',
  'https://*.app.test?x',
  'https://*.[::1].test',
  '*://a.app.test',
]) {
  test(`refuses ${value} as an origin and says what to write`, () => {
    assert.match(
      String(faultOf(origin, value)),
      /^must be an origin as browsers send it: scheme \(not file\), lower-case host, port unless default; no final "\/", no "\*" but for the first of three or more labels$/,
    );
  });
}

test('accepts method names in upper case [RFC 9110 §9.1]', () => {
  for (const value of ['GET', 'A', 'PROPFIND']) assert.equal(faultOf(methodName, value), false);
});

for (const value of ['get', 'Get', 'G3T', 'M-SEARCH', 'GET ', ' GET', 'GET,POST', '*', '']) {
  test(`refuses ${show(value)} as a method name [RFC 9110 §9.1]`, () =>
    assert.equal(faultOf(methodName, value), 'must be a method name in upper case'));
}

test('accepts names of header fields [RFC 9110 §5.1]', () => {
  for (const value of ['ETag', 'x-request-id', 'X_1', "!#$%&'+.^`|~-"]) {
    assert.equal(faultOf(fieldName, value), false);
  }
});

for (const value of ['*', 'X-*', 'a b', 'a:', 'a,b', '"a"', 'é', 'a\n', '(a)', 'a/b', '']) {
  test(`refuses ${show(value)} as the name of a header field [RFC 9110 §5.1]`, () =>
    assert.equal(faultOf(fieldName, value), 'must be the name of a header field; list each, without "*"'));
}

const PROXIES: readonly (readonly [address: string, isGood: boolean])[] = [
  ['http://proxy.test', true],
  ['HTTP://Proxy.test/', true],
  ['http://proxy.test:3128', true],
  ['http://proxy.test:3128/', true],
  ['http://10.0.0.1:8080', true],
  ['http://[::1]:8080', true],
  ['http://my_proxy', true],
  ['http://user:secret@proxy.test', true],
  ['http://us%65r:p%40%2F%3A%C3%B6:x@proxy.test:1', true],
  ['http://user@proxy.test', true],
  ['http://user:@proxy.test', true],
  ['http://:secret@proxy.test', false],
  ['http://@proxy.test', false],
  ['http://:@proxy.test', false],
  ['http://user@name@proxy.test', false],
  ['http://us/er@proxy.test', false],
  ['http://us\\er@proxy.test', false],
  ['http://us%zzer@proxy.test', false],
  ['http://user:p@ss@proxy.test', false],
  ['http://user:p/ss@proxy.test', false],
  ['http://user:p\\ss@proxy.test', false],
  // URL would read what follows the name as port, path, query or fragment of another host.
  ['http://user:80\\ss@proxy.test', false],
  ['http://user:80/ss@proxy.test', false],
  ['http://us?er@proxy.test', false],
  ['http://us#er@proxy.test', false],
  ['http://my-proxy.test:3128', true],
  ['http://[::ffff:192.0.2.1]:3128', true],
  ['http://evil.test\\a:b@proxy.test', false],
  ['http://user:100%@proxy.test', false],
  ['http://user:%zz@proxy.test', false],
  ['http://user:%ff@proxy.test', false],
  ['http://proxy.test//', false],
  ['http://proxy.test/x', false],
  ['http://proxy.test?x', false],
  ['http://proxy.test/?', false],
  ['http://proxy.test#', false],
  ['http://proxy.test:', false],
  ['http://proxy.test:0', false],
  ['http://proxy.test:65536', false],
  ['http://[::g]', false],
  ['http://', false],
  ['http:proxy.test', false],
  ['//proxy.test', false],
  ['proxy.test:3128', false],
  ['https://proxy.test', false],
  ['socks5://proxy.test', false],
  ['http://one.test,http://two.test', false],
  ['http://proxy.test ', false],
  ['http://proxy.test\n', false],
  ['http://us er:secret@proxy.test', false],
  ['', false],
];

for (const [address, isGood] of PROXIES) {
  test(`${isGood ? 'accepts' : 'refuses'} ${show(address)} as the address of a forward proxy`, () => {
    const fault = 'must be http://[user[:password]@]host[:port], with special characters as %XX';
    assert.equal(faultOf(proxyUrl, address), isGood ? false : fault);
  });
}

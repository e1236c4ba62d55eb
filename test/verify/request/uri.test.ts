import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { TLSSocket } from 'node:tls';
import { Refused } from '../../../src/verify/base/refusal.ts';
import {
  readHost,
  isSameUri,
  normalUri,
  requestUri,
  type UriOptions,
} from '../../../src/verify/request/facts.ts';
import { IMPOSSIBLE_HOSTS, POSSIBLE_HOSTS } from '../../support/spellings.ts';
import { unlessRefused } from '../../support/refused.ts';

/** Normal forms with other spellings. */
const EQUIVALENT: Record<string, string[]> = {
  'https://api.test/api/private': [
    'https://api.test/api/private',
    'HTTPS://api.test/api/private',
    'https://API.Test/api/private',
    'https://api.test:443/api/private',
    'https://api.test:/api/private',
    'https://api.test/%61pi/private',
    'https://api.test/api/%70%72ivate',
    'https://api.test/./api/private',
    'https://api.test/x/../api/private',
    'https://api.test/api/x/%2E%2e/private',
    'https://api.test/api/%2e/private',
    'https://api.test/../api/private',
    'https://api.test/api/private?',
    'https://api.test/api/private?q=1',
    'https://api.test/api/private#',
    'https://api.test/api/private#f?q',
    'https://api.test/api/private?q=/../#f',
    'https://api.test/api/private?q=https://other.test/',
  ],
  'http://api.test/': [
    'http://api.test',
    'http://api.test:80',
    'http://api.test:00080',
    'http://api.test/',
    'http://api.test?q',
    'http://api.test#f',
    'http://api.test/.',
    'http://api.test/a/..',
  ],
  'http://api.test/~a-b_c.9': [
    'HTTP://api.test/~a-b_c.9',
    'http://api.test/%7Ea%2Db%5Fc%2E%39',
    'http://api.test/%7ea%2db%5fc%2e9',
  ],
  'http://api.test/%2F%3A%C3%A9%00%7F': [
    'http://api.test/%2f%3a%c3%a9%00%7f',
    'http://api.test/%2F%3A%C3%A9%00%7F',
  ],
  'http://api.test/%257E': ['http://api.test/%257E'],
  'http://api.test/%25': ['http://api.test/%25'],
  'http://api.test/%5B%60%7B%40%2C%3B': ['http://api.test/%5b%60%7b%40%2c%3b'],
  'http://api.test/Az09Zz': ['http://api.test/%41%7A%30%39%5A%7a'],
  "http://api.test/!$&'()*+,;=:@": ["http://api.test/!$&'()*+,;=:@"],
  'http://api.test/%21': ['http://api.test/%21'],
  'http://api.test:8080/': ['http://api.test:8080', 'http://API.test:8080/?q'],
  'http://api.test:443/': ['http://api.test:443/'],
  'https://api.test:80/': ['https://api.test:80/'],
  'https://api.test/a//b/': ['https://api.test/a//b/', 'https://api.test/a//b/./'],
  'https://api.test./a': ['https://api.test./a'],
  'http://[::1]:8080/a': ['http://[::1]:8080/a', 'HTTP://[::1]:8080/%61'],
  'http://127.0.0.1/a': ['http://127.0.0.1:80/a'],
  'http://a~b.test/': ['http://A~b.test'],
  [`http://${'a'.repeat(255)}/`]: [`http://${'A'.repeat(255)}`],
};

for (const [normal, spellings] of Object.entries(EQUIVALENT)) {
  test(`returns ${normal} for each of its spellings [RFC 3986 §6.2.2, §6.2.3]`, () => {
    for (const spelling of spellings) assert.equal(normalUri(spelling), normal, spelling);
  });
}

test('decodes only escaped unreserved characters, and writes other escapes in upper case [RFC 3986 §6.2.2.1, §6.2.2.2]', () => {
  for (let byte = 0; byte < 256; byte += 1) {
    const escape = `%${byte.toString(16).padStart(2, '0')}`;
    const plain =
      /[\w.~-]/.test(String.fromCharCode(byte)) && byte < 128
        ? String.fromCharCode(byte)
        : escape.toUpperCase();
    for (const spelling of [escape, escape.toUpperCase()]) {
      assert.equal(normalUri(`http://api.test/a${spelling}b`), `http://api.test/a${plain}b`);
    }
  }
});

test('distinguishes URIs that RFC 3986 does not make equivalent [E11]', () => {
  assert.equal(new Set(Object.keys(EQUIVALENT)).size, new Set(Object.keys(EQUIVALENT).map(normalUri)).size);
  for (const [one, other] of [
    ['http://api.test/a', 'http://api.test/A'],
    ['http://api.test/a', 'http://api.test/a/'],
    ['http://api.test/a', 'https://api.test/a'],
    ['http://api.test/a/b', 'http://api.test/a%2Fb'],
    ['http://api.test/a', 'http://api.test./a'],
    ['http://api.test/', 'http://api.test:8080/'],
    ['http://api.test/!', 'http://api.test/%21'],
    ['http://api.test/a+b', 'http://api.test/a%20b'],
    ['http://api.test//', 'http://api.test/'],
  ] as const) {
    assert.ok(normalUri(one) !== undefined && normalUri(other) !== undefined);
    assert.notEqual(normalUri(one), normalUri(other), one);
  }
});

const NO_URI = [
  '',
  '/',
  '/api/private',
  'api.test/a',
  '//api.test/a',
  'http:',
  'http:/',
  'http://',
  'http:///a',
  'http:api.test/a',
  'http:/api.test/a',
  'http:\\\\api.test\\a',
  'ftp://api.test/',
  'ws://api.test/',
  'javascript:alert(1)',
  'data:,x',
  'file:///a',
  'httpss://api.test/',
  'xhttp://api.test/',
  'http://user@api.test/',
  'http://user:pass@api.test/',
  'http://@api.test/',
  'http://api.test@other.test/',
  'http://api.test:80@other.test/',
  'http://api.test:x/',
  'http://api.test:65536/',
  'http://api.test:-1/',
  'http://api.test:123456/',
  'http://api.test:000080/',
  'http://a b/',
  'http://a%62/',
  'http://é.test/',
  ' http://api.test/',
  'http://api.test/ ',
  'http://api.test/a b',
  'http://api.test/\ta',
  'http://api.test/a\n',
  '\nhttp://api.test/',
  'ht\ntp://api.test/',
  'http://api.test/\\a',
  'http://api.test\\a',
  'http://api.test/a|b',
  'http://api.test/{a}',
  'http://api.test/é',
  'http://api.test/"',
  'http://api.test/[a]',
  'http://api.test/%',
  'http://api.test/%4',
  'http://api.test/%4g',
  'http://api.test/%g4',
  'http://api.test/%%61',
  'http://api.test/^',
  'http://api.test/`',
  'http://127.1/',
  'http://0x7f000001/',
  'http://2130706433/',
  'http://0177.0.0.1/',
  'http://[::1/',
  'http://::1/',
  'http://[0::1]/',
  'http://[api.test]/',
  'http://[::1]x/',
  `http://${'a'.repeat(256)}/`,
];

for (const text of NO_URI) {
  test(`returns undefined for ${JSON.stringify(text)}, which is no unambiguous http(s) URI [RFC 3986 §3]`, () => {
    assert.equal(normalUri(text), undefined);
  });
}

/** The URI of a request with these fields, unnormalized, read as in the pipeline: Host first. */
const spelledUriOf = (rawHeaders: readonly string[], path: string, options: UriOptions) => {
  const host = options.publicUrl === undefined ? unlessRefused(readHost(rawHeaders)) : 'inner.test';
  return unlessRefused(requestUri({ method: 'GET', host, path, rawHeaders }, options));
};

const uriOf: typeof spelledUriOf = (...request) => {
  const uri = spelledUriOf(...request);
  return uri === undefined ? undefined : normalUri(uri);
};

const refused = (reason: string) => (failure: unknown) => {
  assert.ok(failure instanceof Refused);
  assert.deepEqual([failure.refusal.kind, failure.refusal.reason], ['invalid_request', reason]);
  return true;
};

for (const host of POSSIBLE_HOSTS) {
  test(`accepts the Host ${host} [RFC 9110 §7.2]`, () => {
    assert.equal(readHost(['Accept', 'x', 'HOST', host]), host);
  });
}

for (const host of IMPOSSIBLE_HOSTS) {
  test(`refuses the Host ${JSON.stringify(host)} [RFC 9112 §3.2, E4]`, () => {
    assert.throws(() => unlessRefused(readHost(['Host', host])), refused('host-refused'));
    const forwarded = ['Host', 'api.test', 'X-Forwarded-Host', host];
    const options = { publicUrl: undefined, trustProxy: true };
    // The last hop counts.
    const hop = host.split(',').at(-1)?.trim() ?? '';
    if (hop === '') assert.equal(uriOf(forwarded, '/', options), 'http://api.test/');
    else if (hop !== host) assert.equal(uriOf(forwarded, '/', options), `http://${hop}/`);
    else assert.throws(() => uriOf(forwarded, '/', options), refused('forwarded-refused'));
  });
}

for (const [htu, uri, isSame] of [
  ['http://[2001:DB8:0:0::1]/a', 'http://[2001:DB8:0:0::1]/a', true],
  ['http://127.1/a', 'http://127.1/a', true],
  ['http://api.test/a|b', 'http://api.test/a|b', true],
  ['HTTP://API.test:80/%61?q#f', 'http://api.test/a', true],
  ['http://example.com/a', 'http://example.com:/a', true],
  ['http://ho%7Est/a', 'http://ho~st/a', false],
  ['http://[2001:db8::1]/a', 'http://[2001:DB8:0:0::1]/a', false],
  ['http://[2001:DB8:0:0::1]/a?q', 'http://[2001:DB8:0:0::1]/a', false],
  ['http://127.0.0.1/a', 'http://127.1/a', false],
  ['http://127.1/a', 'http://127.0.0.1/a', false],
  ['http://127.1/b', 'http://127.1/a', false],
  ['http://0x7f.1/a', 'http://127.1/a', false],
  ['', 'http://127.1/a', false],
] as const) {
  test(`${isSame ? 'accepts' : 'refuses'} the htu ${htu} for ${uri} [RFC 9449 §4.3(9), RFC 3986 §6.2.1, E11]`, () => {
    assert.equal(isSameUri(htu, uri), isSame);
  });
}

test('returns the URI of a request as it was spelled [RFC 9449 §4.3(9)]', () => {
  const rules = { publicUrl: undefined, trustProxy: true };
  const forwarded = ['X-Forwarded-Proto', 'HTTPS', 'X-Forwarded-Host', 'Outer.test:'];
  assert.equal(spelledUriOf(['Host', 'Ho~st:'], '/%61', rules), 'http://Ho~st:/%61');
  assert.equal(spelledUriOf(['Host', 'a', ...forwarded], '/%61', rules), 'HTTPS://Outer.test:/%61');
  const published = { publicUrl: 'https://Public.test', trustProxy: false };
  assert.equal(spelledUriOf([], '/%61', published), 'https://Public.test/%61');
});

test('returns no URI for a path with a "#", where a URI ends but a path does not [RFC 9112 §3.2.1, E5]', () => {
  for (const publicUrl of [undefined, 'https://public.test/base']) {
    for (const trustProxy of [false, true]) {
      for (const path of ['/a#', '/a#/b', '/a%23b#c']) {
        assert.equal(uriOf(['Host', 'a.test'], path, { publicUrl, trustProxy }), undefined, path);
      }
      assert.ok(uriOf(['Host', 'a.test'], '/a%23b', { publicUrl, trustProxy })?.endsWith('/a%23b'));
    }
  }
});

test('checks every Host, whatever the last request had [RFC 9112 §3.2]', () => {
  for (const round of [1, 2]) {
    assert.equal(readHost(['Host', 'a.test']), 'a.test', `round ${round}`);
    assert.equal(readHost(['Host', 'b.test']), 'b.test');
    for (const again of ['a b', 'a b', 'A.test:65536']) {
      assert.throws(() => unlessRefused(readHost(['Host', again])), refused('host-refused'));
    }
    assert.throws(
      () => unlessRefused(readHost(['Host', 'b.test', 'Host', 'b.test'])),
      refused('host-refused'),
    );
    assert.throws(() => unlessRefused(readHost([])), refused('host-refused'));
  }
});

test('accepts a request of HTTP/1.0 without Host, which then has no URI [RFC 9112 §3.2]', () => {
  assert.equal(readHost([], '1.0'), undefined);
  assert.throws(() => unlessRefused(readHost(['Host', ''], '1.0')), refused('host-refused'));
  assert.throws(() => unlessRefused(readHost(['Host', 'a', 'Host', 'a'], '1.0')), refused('host-refused'));

  const uri = (rawHeaders: readonly string[], publicUrl?: string) =>
    requestUri({ method: 'GET', host: undefined, path: '/', rawHeaders }, { publicUrl, trustProxy: true });

  assert.equal(uri([]), undefined);
  assert.equal(uri(['X-Forwarded-Host', 'a.test']), 'http://a.test/');
  assert.equal(uri([], 'https://a.test'), 'https://a.test/');
});

test('refuses a request without a Host, or with two [RFC 9112 §3.2]', () => {
  for (const fields of [[], ['X-Host', 'a'], ['Host', 'a', 'Host', 'a'], ['Host', 'a', 'host', '']]) {
    assert.throws(() => unlessRefused(readHost(fields)), refused('host-refused'));
    assert.throws(
      () => uriOf(fields, '/', { publicUrl: undefined, trustProxy: false }),
      refused('host-refused'),
    );
  }
});

const FIELDS = [
  'Host',
  'Inner.test:8080',
  'X-Forwarded-Proto',
  'ftp',
  'x-forwarded-proto',
  'http , HTTPS',
  'X-Forwarded-Host',
  'evil.test',
  'X-Forwarded-Host',
  'evil.test:1,Outer.test',
];

const URIS: [what: string, fields: readonly string[], rules: UriOptions, uri: string | undefined][] = [
  [
    'PUBLIC_URL, whatever the fields say',
    FIELDS,
    { publicUrl: 'https://Public.test', trustProxy: true },
    'https://public.test/a%2Fb',
  ],
  [
    'PUBLIC_URL with its path prefix',
    FIELDS,
    { publicUrl: 'https://public.test:8443/prefix/v1', trustProxy: false },
    'https://public.test:8443/prefix/v1/a%2Fb',
  ],
  [
    'PUBLIC_URL, also without a Host',
    [],
    { publicUrl: 'https://public.test', trustProxy: false },
    'https://public.test/a%2Fb',
  ],
  ['its own origin', FIELDS, { publicUrl: undefined, trustProxy: false }, 'http://inner.test:8080/a%2Fb'],
  [
    'the last hop under TRUST_PROXY',
    FIELDS,
    { publicUrl: undefined, trustProxy: true },
    'https://outer.test/a%2Fb',
  ],
  [
    'its own origin under TRUST_PROXY when nothing is forwarded',
    ['Host', 'inner.test'],
    { publicUrl: undefined, trustProxy: true },
    'http://inner.test/a%2Fb',
  ],
  [
    'the forwarded scheme with its own host',
    ['Host', 'inner.test', 'X-Forwarded-Proto', 'https'],
    { publicUrl: undefined, trustProxy: true },
    'https://inner.test/a%2Fb',
  ],
  [
    'its own scheme with the forwarded host',
    ['Host', 'inner.test', 'X-Forwarded-Host', 'outer.test:80'],
    { publicUrl: undefined, trustProxy: true },
    'http://outer.test/a%2Fb',
  ],
  [
    'its own scheme and host, not those of an earlier hop, where the last hop is empty',
    ['Host', 'inner.test', 'X-Forwarded-Proto', 'https,', 'X-Forwarded-Host', 'evil.test, '],
    { publicUrl: undefined, trustProxy: true },
    'http://inner.test/a%2Fb',
  ],
  ...(['ws', 'WS', 'https, ws'] as const).map((scheme) => upgrade(scheme, 'http')),
  ...(['wss', 'WSS', 'http,wss'] as const).map((scheme) => upgrade(scheme, 'https')),
];

/** Some proxies name the scheme of an upgrade so. */
function upgrade(scheme: string, as: string): (typeof URIS)[number] {
  const fields = ['Host', 'inner.test', 'X-Forwarded-Proto', scheme, 'X-Forwarded-Host', 'outer.test'];
  return [
    `the forwarded scheme ${scheme}`,
    fields,
    { publicUrl: undefined, trustProxy: true },
    `${as}://outer.test/a%2Fb`,
  ];
}

for (const [what, fields, options, uri] of URIS) {
  test(`builds the URI of a request from ${what} [RFC 9449 §4.3(9)]`, () => {
    assert.equal(uriOf(fields, '/%61%2fb', options), uri);
  });
}

for (const scheme of [
  'ftp',
  'httpsx',
  'xhttp',
  'https:',
  'https://evil.test/?',
  'http\thttps',
  'wsss',
  'xws',
]) {
  test(`refuses the forwarded scheme ${JSON.stringify(scheme)} under TRUST_PROXY`, () => {
    const fields = ['Host', 'inner.test', 'X-Forwarded-Proto', scheme];
    assert.throws(
      () => uriOf(fields, '/', { publicUrl: undefined, trustProxy: true }),
      refused('forwarded-refused'),
    );
    assert.equal(uriOf(fields, '/', { publicUrl: undefined, trustProxy: false }), 'http://inner.test/');
  });
}

test('ignores Forwarded and names with underscores', () => {
  const fields = [
    'Host',
    'inner.test',
    'Forwarded',
    'host=evil.test;proto=https',
    'X_Forwarded_Host',
    'evil.test',
    'X-Forwarded-Port',
    '99',
    'X-Original-Host',
    'evil.test',
  ];
  assert.equal(uriOf(fields, '/', { publicUrl: undefined, trustProxy: true }), 'http://inner.test/');
});

test('uses the last of several forwarded fields, each with one hop, under TRUST_PROXY', () => {
  const hops = [
    ['http', 'evil.test'],
    ['https', 'outer.test'],
  ] as const;
  const fields = hops.flatMap(([scheme, host]) => ['X-Forwarded-Proto', scheme, 'X-Forwarded-Host', host]);
  const options = { publicUrl: undefined, trustProxy: true };
  assert.equal(uriOf(['Host', 'inner.test', ...fields], '/a', options), 'https://outer.test/a');
});

const OVER_TLS: [forwarded: string[], trustProxy: boolean, uri: string][] = [
  [[], false, 'https://api.test/x'],
  [[], true, 'https://api.test/x'],
  [['X-Forwarded-Proto', 'http'], true, 'http://api.test/x'],
  [['X-Forwarded-Proto', 'http'], false, 'https://api.test/x'],
];

for (const [rawHeaders, trustProxy, uri] of OVER_TLS) {
  test(`takes ${uri} for a request over a TLS socket, with ${rawHeaders.join(' ') || 'no field'}, trustProxy ${trustProxy} [RFC 9449 §4.3(9)]`, () => {
    const socket = new TLSSocket(new Socket());
    const facts = { method: 'GET', host: 'api.test', path: '/x', rawHeaders, socket };
    assert.equal(requestUri(facts, { publicUrl: undefined, trustProxy }), uri);
  });
}

/* What a policy responds to a proxy that asks whether a request may pass. */
import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { ResponseEvent } from '../../src/gate/events.ts';
import { authenticated, needs, open, optional } from '../../src/gate/rules/access.ts';
import { scope } from '../../src/gate/rules/guards.ts';
import { recentLogin } from '../../src/gate/rules/recent-login.ts';
import { del, get, post, under, upstream } from '../../src/service/routes/route.ts';
import { cors } from '../../src/options/cors.ts';
import { resourceMetadata } from '../../src/options/resource-metadata.ts';
import { makeSigningKey } from '../idp/keys.ts';
import { rawJws } from '../idp/tokens.ts';
import {
  asking,
  bearer,
  bound,
  issuer,
  startPolicy,
  told,
  type Fields,
  type Policy,
} from './forward-auth-fixture.ts';

const routes = [
  get('/', open, upstream),
  get('/open/{x}', open, upstream),
  get('/feed', optional, upstream),
  get('/orders/{id}', needs(scope('read:orders')), upstream),
  post('/orders', needs(scope('write:orders')), upstream),
  del('/orders/{id}', needs(scope('write:orders'), recentLogin({ maxAgeSeconds: 60 })), upstream),
  get('/me', authenticated, upstream),
  get('/healthz', authenticated, upstream),
  get('/readyz', open, upstream),
  get('/forward-auth', open, upstream),
];

const rules = [under('/admin', needs(scope('admin')))];

const METADATA = '/.well-known/oauth-protected-resource';
const REALM = 'Bearer realm="api"';
const ALGS = 'DPoP algs="ES256 ES384 ES512 EdDSA PS256 RS256"';

const UNLISTED = 'no route allows this method at this path';

let policy: Policy;

before(async () => {
  policy = await startPolicy({ routes, rules });
});

after(() => policy.stop());

const ask = (method: string, uri: string, fields: Fields = []) =>
  policy.ask({ forwarded: asking(method, uri), fields });

/** In Envoy's way. */
const askBehindPrefix = (method: string, path: string, fields: Fields = []) =>
  policy.ask({ method, target: `/forward-auth${path}`, fields });

const READ = bearer({ scope: 'read:orders' });

describe('a request of the proxy with forwarded fields', () => {
  test('gets 200 if the route of the forwarded method and path admits it', async () => {
    assert.equal(told(await ask('GET', '/orders/7?a=/../b#c', READ)), '200');
    assert.equal(told(await ask('GET', '/orders/7?', READ)), '200');
    assert.equal(told(await ask('HEAD', '/orders/7', READ)), '200');
    assert.equal(told(await ask('POST', '/orders', bearer({ scope: 'write:orders' }))), '200');
    assert.equal(told(await ask('GET', '/')), '200');
  });

  test('may have the method GET or HEAD, and any query, and gets 405 with any other method', async () => {
    for (const target of ['/forward-auth', '/forward-auth?', '/forward-auth?a=/forward-auth/open/1']) {
      for (const method of ['GET', 'HEAD']) {
        const { status } = await policy.ask({ method, target, forwarded: asking('GET', '/open/1') });
        assert.equal(status, 200);
      }
    }
    for (const method of ['POST', 'PUT', 'OPTIONS', 'DELETE']) {
      const response = await policy.ask({ method, forwarded: asking('GET', '/open/1') });
      assert.equal(told(response), '405 method_not_allowed');
      assert.equal(response.headers.get('allow'), 'GET, HEAD');
    }
  });

  test('may ask about a method of any characters of a token, which no route allows [RFC 9110 §5.6.2]', async () => {
    const refused = told(await ask('PATCH', '/orders/7', READ));
    assert.match(refused, /^40[345] /);
    assert.equal(told(await ask("!#$%&'*+.^_`|~-A1", '/orders/7', READ)), refused);
  });

  const [METHOD, URI] = asking('GET', '/open/1');
  const malformed: Readonly<Record<string, Fields>> = {
    'no method': [URI!],
    'an empty method': [['X-Forwarded-Method', ''], URI!],
    'a method that is no token': [['X-Forwarded-Method', 'GET/'], URI!],
    'a list of methods': [['X-Forwarded-Method', 'GET, POST'], URI!],
    'two methods': [METHOD!, METHOD!, URI!],
    'two methods, one of them empty': [METHOD!, ['X-Forwarded-Method', ''], URI!],
    'two methods, the first of them empty': [['X-Forwarded-Method', ''], METHOD!, URI!],
    'no path': [METHOD!],
    'an empty path': [METHOD!, ['X-Forwarded-Uri', '']],
    'a path that does not begin with a slash': [METHOD!, ['X-Forwarded-Uri', 'open/1']],
    'an absolute URI': [METHOD!, ['X-Forwarded-Uri', 'https://api.example/open/1']],
    'an asterisk': [METHOD!, ['X-Forwarded-Uri', '*']],
    'two paths': [METHOD!, URI!, URI!],
    'two paths, the last of them empty': [METHOD!, URI!, ['X-Forwarded-Uri', '']],
    'two paths, the first of them empty': [METHOD!, ['X-Forwarded-Uri', ''], URI!],
    'two paths with queries': [
      METHOD!,
      ['X-Forwarded-Uri', '/open/1?a=1'],
      ['X-Forwarded-Uri', '/open/1?a=1'],
    ],
    'the field names of other proxies': [
      ['X-Original-Method', 'GET'],
      ['X-Original-URI', '/open/1'],
    ],
  };

  for (const [what, forwarded] of Object.entries(malformed)) {
    test(`is malformed with ${what}, and keeps the connection of the proxy [I3]`, async () => {
      const response = await policy.ask({ forwarded });
      assert.deepEqual([told(response), response.closes], ['400 invalid_request', false]);
      assert.equal(response.body.message, 'the auth request does not have exactly one method and one path');
      assert.equal(policy.logs.at(-1)?.reason, 'question-malformed');
    });
  }

  test('ends its connection when it has a body', async () => {
    const malformedOne = await policy.ask({ body: '{}' });
    assert.deepEqual([told(malformedOne), malformedOne.closes], ['400 invalid_request', true]);
    const good = await policy.ask({ forwarded: asking('GET', '/open/1'), body: '{}' });
    assert.deepEqual([told(good), good.closes], ['200', true]);
  });
});

describe('a request of the proxy under the prefix /forward-auth', () => {
  test('gets 200 if a route admits it, chosen by its own method and the path after the prefix', async () => {
    assert.equal(told(await askBehindPrefix('GET', '/orders/7?a=1', READ)), '200');
    assert.equal(told(await askBehindPrefix('POST', '/orders', bearer({ scope: 'write:orders' }))), '200');
    assert.equal(told(await askBehindPrefix('POST', '/orders', READ)), '403 insufficient_scope');
    assert.equal(told(await askBehindPrefix('GET', '/')), '200');
    assert.equal((await askBehindPrefix('HEAD', '/open/1')).status, 200);
    assert.equal(told(await askBehindPrefix('GET', '/forward-auth')), '200');
  });

  test('ignores a forwarded method', async () => {
    const fields = asking('GET', '/open/1');
    assert.equal(told(await askBehindPrefix('DELETE', '/open/1', fields)), '403 insufficient_scope');
  });

  test('gets 400 if X-Forwarded-Uri names another path: a slash too many in the address of a proxy would ask about /', async () => {
    for (const [path, uri] of [
      ['/', '/me'],
      ['/open/1', '/me'],
      ['/open/1', ''],
      ['/open/1', '/open/1/'],
      ['/open/1', '/open/%31'],
      ['/open/1', 'https://api.test/open/1'],
      ['/open/1', '/open/1#/me'],
      ['/open/1', '/open/1, /open/1'],
      ['//open/1', '/open/1'],
      ['/', '//'],
      ['/?uri=/me', '/me?uri=/'],
    ] as const) {
      assert.equal(told(await askBehindPrefix('GET', path, asking('GET', uri))), '400 invalid_request', uri);
    }
    const repeated: Fields = [...asking('GET', '/open/1'), ...asking('GET', '/me')];
    const one = asking('GET', '/open/1');
    for (const fields of [
      [...one, ['X-Forwarded-Uri', '']],
      [['X-Forwarded-Uri', ''], ...one],
    ] as Fields[]) {
      assert.equal(told(await askBehindPrefix('GET', '/open/1', fields)), '400 invalid_request');
    }
    assert.equal(policy.logs.at(-1)?.reason, 'question-malformed');
    assert.equal(told(await askBehindPrefix('GET', '/open/1', repeated)), '400 invalid_request');
    assert.equal(told(await askBehindPrefix('GET', '/open/1', asking('GET', '/open/1?a=/me'))), '200');
    assert.equal(told(await askBehindPrefix('GET', '/open/1?a=1', asking('GET', '/open/1'))), '200');
    assert.equal(
      told(await askBehindPrefix('GET', '//open/1', asking('GET', '//open/1'))),
      '403 insufficient_scope',
    );
  });

  test('gets 404 if its path only begins with the letters of the prefix', async () => {
    for (const target of [
      '/forward-authx',
      '/forward-auth%2Fopen/1',
      '/forward-auth.',
      '/forward-auth;/open/1',
    ]) {
      assert.equal(told(await policy.ask({ target, forwarded: asking('GET', '/') })), '404 not_found');
    }
  });
});

describe('the documented request', () => {
  test('of Traefik passes, with every field that it adds', async () => {
    const added: Fields = [
      ['X-Forwarded-For', '203.0.113.7'],
      ['X-Forwarded-Server', 'traefik'],
      ['X-Forwarded-Port', '443'],
      ['X-Real-Ip', '203.0.113.7'],
      ['Accept-Encoding', 'gzip'],
    ];
    const proof = bound('POST', 'https://api.example/orders', { scope: 'write:orders' });
    assert.equal(told(await ask('POST', '/orders', [...added, ...proof])), '200');
    assert.equal(told(await ask('POST', '/orders', added)), '401 unauthorized');
  });

  test('of Envoy passes under the prefix /forward-auth, with a Content-Length of 0, and keeps the connection', async (t) => {
    const own = await startPolicy({ routes }, { publicUrl: 'https://api.example' });
    t.after(own.stop);
    const proof = bound('POST', 'https://api.example/orders', { scope: 'write:orders' });
    const fields: Fields = [['Content-Length', '0'], ...proof];
    const response = await own.ask({ method: 'POST', target: '/forward-auth/orders?a=1', fields });
    assert.deepEqual([told(response), response.closes], ['200', false]);
  });
});

describe('what does not pass', () => {
  const UNLISTED_PATHS = [
    ...['/nothing', '/orders', '/orders/1/2', '/ORDERS/1', '/open', '/forward-auth/open/1'],
    ...['/open/', '//open/1', '/open//1', '/open/1/', '/./open/1', '/open/..', '/open/%2e%2e', '/open/.%2E'],
    ...['/open/a#b', '/open/a\\b', '/open/a;b', '/open;x/1', '/open/\xe9', '/open/a\tb'],
    ...['%2f', '%2F', '%5c', '%5C', '%3b', '%3B', '%3f', '%23', '%25', '%252e'].map(
      (each) => `/open/a${each}b`,
    ),
    ...['%00', '%0a', '%0D', '%1f', '%7f', '%7F', '%C2%80', '%c2%9F'].map((each) => `/open/a${each}b`),
    ...['%', '%2', '%zz', '%c0%af', '%e0%80%af', '%ff'].map((each) => `/open/a${each}`),
  ];

  for (const uri of UNLISTED_PATHS) {
    test(`refuses the path ${JSON.stringify(uri)}, which has no route or which servers read in several ways [I2]`, async () => {
      const response = await ask('GET', uri, bearer({ scope: 'read:orders' }));
      assert.deepEqual(
        [told(response), response.body.message, response.closes],
        ['403 insufficient_scope', UNLISTED, false],
      );
      assert.equal(policy.logs.at(-1)?.reason, 'route-missing');
    });
  }

  test('refuses a method that the route does not have [I4]', async () => {
    for (const method of ['POST', 'OPTIONS', 'PROPFIND', 'get', 'CONNECT']) {
      assert.equal(told(await ask(method, '/open/1')), '403 insufficient_scope', method);
    }
  });

  test('refuses with one WWW-Authenticate field, with the error in the challenge of the scheme that was used', async () => {
    const { headers } = await ask('GET', '/nothing', READ);
    const error = `error="insufficient_scope", error_description="${UNLISTED}"`;
    assert.equal(headers.get('www-authenticate'), `${REALM}, ${error}, ${ALGS}`);
  });

  test('applies the rules before it refuses a path without a route', async () => {
    assert.equal(told(await ask('GET', '/admin/x')), '401 unauthorized');
    assert.equal(told(await ask('GET', '/admin/x', READ)), '403 insufficient_scope');
    const admin = await ask('GET', '/admin/x', bearer({ scope: 'admin' }));
    assert.deepEqual([told(admin), admin.body.message], ['403 insufficient_scope', UNLISTED]);
  });
});

describe('what passes', () => {
  test('may have escaped letters, spaces and Unicode, and punctuation in its path', async () => {
    for (const each of [
      '%41',
      '%20',
      '%C3%A9',
      '%e2%82%ac',
      "~!$&'()*+,=:@",
      'a"<>`{|}^',
      '%7e',
      '%2e%2ex',
    ]) {
      assert.equal(told(await ask('GET', `/open/${each}`)), '200', each);
    }
  });

  const AUTH = ['x-auth-subject', 'x-auth-issuer', 'x-auth-scope', 'x-auth-claims'];

  /** The four fields of an admitted question. */
  async function identity(fields: Fields, uri = '/me', asked = policy) {
    const response = await asked.ask({ forwarded: asking('GET', uri), fields });
    assert.equal(told(response), '200');
    assert.equal(response.headers.get('content-length'), '0');
    assert.equal(response.headers.get('cache-control'), 'no-store');
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    assert.deepEqual(
      [...response.headers.keys()].filter((name) => name.startsWith('x-auth-')),
      AUTH,
    );
    return AUTH.map((name) => response.headers.get(name) ?? '');
  }

  test('has the caller in four fields, the claims as base64url of JSON', async () => {
    // Bytes that have a slash in base64, wherever they stand.
    const tenant = 'äcme??????';
    const claims = { sub: 'auth0|e', scope: 'read:orders b', tenant };
    const [subject, iss, scopes, encoded = ''] = await identity(bearer(claims));
    assert.deepEqual([subject, iss, scopes], ['auth0|e', 'https://issuer.test/', 'read:orders b']);
    assert.match(encoded, /^[\w-]+$/);
    const { exp, ...others } = JSON.parse(Buffer.from(encoded, 'base64url').toString());
    assert.equal(typeof exp, 'number');
    assert.deepEqual(others, { iss: 'https://issuer.test/', aud: 'https://api.test', ...claims });
  });

  test('has four empty identity fields for an open route and for a request without credentials', async () => {
    const EMPTY = ['', '', '', ''];
    assert.deepEqual(await identity([], '/feed'), EMPTY);
    assert.deepEqual(await identity(bearer(), '/open/1'), EMPTY);
    assert.deepEqual(await identity([['Authorization', 'Bearer garbage']], '/open/1'), EMPTY);
    assert.equal((await identity(bearer(), '/feed'))[0], 'test-user');
  });

  test('never repeats an identity that the client claims [I1]', async () => {
    const forged = AUTH.map((name) => [name, 'root'] as const);
    assert.deepEqual(await identity(forged, '/feed'), ['', '', '', '']);
  });

  test('leaves the subject empty if it is not printable ASCII, or has a space at either end', async () => {
    for (const sub of ['é', 'a\nb', 'a\x00', ' a', 'a ', ' ', 'a\x7f', 'a\x7fb', '\u2028']) {
      assert.equal((await identity(bearer({ sub })))[0], '', JSON.stringify(sub));
    }
    for (const sub of ['a b', '~', '!', 'a"b\\c,d']) assert.equal((await identity(bearer({ sub })))[0], sub);
  });

  test('leaves the scopes empty when one of them is no scope-token [RFC 6749 §3.3]', async () => {
    for (const granted of ['a "b"', 'a\\b', 'a\tb', 'é', ['a', 'b c'], ['a', ''], ['a\n'], 7, {}, '']) {
      assert.equal((await identity(bearer({ scope: granted })))[2], '', JSON.stringify(granted));
    }
    const every = "!#$%&'()*+,-./09:;<=>?@AZ[]^_`az{|}~";
    assert.equal((await identity(bearer({ scope: every })))[2], every);
    for (const granted of ['a  b', ' a b ', ['a', 'b']]) {
      assert.equal((await identity(bearer({ scope: granted })))[2], 'a b', JSON.stringify(granted));
    }
  });

  test('leaves only the claims field empty when the claims are over 8 KiB as base64url', async () => {
    const lengthOf = async (pad: number) => {
      const [subject, , , encoded = ''] = await identity(bearer({ pad: 'x'.repeat(pad) }));
      assert.equal(subject, 'test-user');
      return encoded.length;
    };

    const usual = await lengthOf(0);
    const most = Math.floor(((8192 - usual) * 3) / 4);
    const lengths = [];
    for (let pad = most - 4; pad < most + 5; pad += 1) lengths.push(await lengthOf(pad));
    assert.equal(Math.max(...lengths), 8192);
    assert.deepEqual(lengths.slice(-2), [0, 0]);
  });

  test('leaves only the claims field empty when the claims are nested too deeply for JSON', async (t) => {
    const { kid, publicJwk, privateKey } = makeSigningKey();
    const asked = await startPolicy({ routes }, {}, async () => ({ keys: [publicJwk] }));
    t.after(asked.stop);
    const header = JSON.stringify({ alg: 'RS256', kid });
    const usual = JSON.stringify({
      iss: 'https://issuer.test/',
      aud: issuer.options.audience,
      sub: 'test-user',
      exp: 4e9,
    });
    const payload = `${usual.slice(0, -1)},"deep":${'['.repeat(5_500)}${']'.repeat(5_500)}}`;
    const token = rawJws(header, payload, (input) => sign('sha256', input, privateKey));
    const fields = [['Authorization', `Bearer ${token}`]] as const;
    assert.deepEqual(await identity(fields, '/me', asked), ['test-user', 'https://issuer.test/', '', '']);
  });
});

describe('what is refused', () => {
  test('has the status and the body that a service sends, and one field with all challenges', async () => {
    const none = await ask('GET', '/me');
    assert.deepEqual(
      [none.status, none.body],
      [401, { error: 'unauthorized', message: 'Authentication required' }],
    );
    assert.equal(none.headers.get('www-authenticate'), `${REALM}, ${ALGS}`);
    assert.equal(none.headers.get('cache-control'), 'no-store');

    const { status, headers } = await ask('GET', '/orders/1', bearer({ scope: 'other' }));
    const error = 'error="insufficient_scope", error_description="the scope read:orders is missing"';
    assert.equal(status, 403);
    assert.match(
      headers.get('www-authenticate') ?? '',
      /^Bearer realm="api", error="insufficient_scope", .+scope="read:orders", DPoP algs=/,
    );
    assert.ok(error.length > 0);
  });

  test('refuses two tokens, an expired token and an old login, as a service does', async () => {
    const [token] = bearer();
    assert.equal(told(await ask('GET', '/me', [token!, token!])), '400 invalid_request');
    assert.equal(told(await ask('GET', '/me', bearer({ exp: 1 }))), '401 invalid_token');
    assert.equal(told(await ask('GET', '/feed', bearer({ exp: 1 }))), '401 invalid_token');
    const old = await ask('DELETE', '/orders/1', bearer({ scope: 'write:orders', auth_time: 1 }));
    assert.equal(told(old), '401 insufficient_user_authentication');
  });

  test('refuses a wrong Host and too many header fields, as a service does', async () => {
    const wrong = await policy.ask({ forwarded: asking('GET', '/'), fields: [['Host', 'b']] });
    assert.deepEqual([told(wrong), wrong.closes], ['400 invalid_request', true]);
    const many = Array.from({ length: 201 }, (_, index) => [`X-${index}`, ''] as const);
    assert.equal((await policy.ask({ forwarded: asking('GET', '/'), fields: many })).status, 431);
  });
});

describe('a proof', () => {
  const URL = 'https://api.example/orders/7';
  const CLAIMS = { scope: 'read:orders' };

  test('is for the forwarded method, scheme, host and path, and is accepted once', async () => {
    const fields = bound('GET', URL, CLAIMS);
    assert.equal(told(await ask('GET', '/orders/7?page=2', fields)), '200');
    assert.equal(told(await ask('GET', '/orders/7', fields)), '401 invalid_dpop_proof');
    assert.equal(policy.logs.at(-1)?.reason, 'proof-replayed');
  });

  test('for the address of the service itself, or for its method, is refused', async () => {
    const own = `http://gatehouse.internal/forward-auth`;
    for (const url of [
      own,
      'http://api.example/orders/7',
      'https://api.example/forward-auth/orders/7',
      'https://other.example/orders/7',
    ]) {
      assert.equal(
        told(await ask('GET', '/orders/7', bound('GET', url, CLAIMS))),
        '401 invalid_dpop_proof',
        url,
      );
      assert.equal(policy.logs.at(-1)?.reason, 'proof-htu');
    }
    const head = await ask('HEAD', '/orders/7', bound('GET', URL, CLAIMS));
    assert.equal(policy.logs.at(-1)?.reason, 'proof-htm');
    assert.equal(head.status, 401);
  });

  test('is for https where the proxy forwards wss, and for http where it forwards ws [RFC 6455 §4.1]', async () => {
    for (const [scheme, url] of [
      ['wss', URL],
      ['WSS', URL],
      ['ws', 'http://api.example/orders/7'],
      ['Ws', 'http://api.example/orders/7'],
    ] as const) {
      const [method, uri, , host] = asking('GET', '/orders/7');
      const forwarded: Fields = [method!, uri!, ['X-Forwarded-Proto', scheme], host!];
      const asked = await policy.ask({ forwarded, fields: bound('GET', url, CLAIMS) });
      assert.equal(told(asked), '200', scheme);
    }
  });

  const [METHOD, URI, PROTO, HOST] = asking('GET', '/orders/7');
  const origins: Readonly<Record<string, Fields>> = {
    'no scheme': [HOST!],
    'no host': [PROTO!],
    'two schemes': [PROTO!, PROTO!, HOST!],
    'two hosts': [PROTO!, HOST!, HOST!],
    'a list of schemes': [['X-Forwarded-Proto', 'https, https'], HOST!],
    'a list of hosts': [PROTO!, ['X-Forwarded-Host', 'api.example, api.example']],
    'another scheme': [['X-Forwarded-Proto', 'wsss'], HOST!],
    'a host with a path': [PROTO!, ['X-Forwarded-Host', 'api.example/x']],
  };

  for (const [what, forwarded] of Object.entries(origins)) {
    test(`gets 400 with ${what}, since its URL would be a guess, and a request without a proof passes [I6]`, async () => {
      const all = [METHOD!, URI!, ...forwarded];
      const proved = await policy.ask({ forwarded: all, fields: bound('GET', URL, CLAIMS) });
      assert.deepEqual([told(proved), proved.closes], ['400 invalid_request', false]);
      assert.equal(policy.logs.at(-1)?.reason, 'forwarded-refused');
      assert.equal(told(await policy.ask({ forwarded: all, fields: READ })), '200');
    });
  }

  test('is compared with PUBLIC_URL and the path, however the proxy sends the path and whatever scheme and host it forwards', async (t) => {
    const own = await startPolicy({ routes }, { publicUrl: 'https://public.example', trustProxy: true });
    t.after(own.stop);
    const fields = () => bound('GET', 'https://public.example/orders/7', CLAIMS);
    const forms = [
      { forwarded: asking('GET', '/orders/7') },
      { target: '/forward-auth/orders/7' },
      { forwarded: [METHOD!, URI!] },
    ];
    for (const form of forms) assert.equal(told(await own.ask({ ...form, fields: fields() })), '200');
  });

  test('in a request under the prefix /forward-auth gets 400 without the forwarded scheme and host', async () => {
    const proved = (fields: Fields) => [...bound('GET', URL, CLAIMS), ...fields];
    assert.equal(told(await askBehindPrefix('GET', '/orders/7', proved([]))), '400 invalid_request');
    assert.equal(told(await askBehindPrefix('GET', '/orders/7', proved([PROTO!, HOST!]))), '200');
  });

  test('is compared with the forwarded URL under TRUST_PROXY too, and a list of schemes gets 400', async (t) => {
    const own = await startPolicy({ routes }, { trustProxy: true });
    t.after(own.stop);
    assert.equal(
      told(await own.ask({ forwarded: asking('GET', '/orders/7'), fields: bound('GET', URL, CLAIMS) })),
      '200',
    );
    const listed = [METHOD!, URI!, ['X-Forwarded-Proto', 'http, https'] as const, HOST!];
    assert.equal(
      told(await own.ask({ forwarded: listed, fields: bound('GET', URL, CLAIMS) })),
      '400 invalid_request',
    );
  });

  test('without a nonce is refused, and the refusal has one', async (t) => {
    const own = await startPolicy({ routes }, { dpopNonceSecret: 's'.repeat(32), dpopMode: 'REQUIRED' });
    t.after(own.stop);
    const first = await own.ask({ forwarded: asking('GET', '/orders/7'), fields: bound('GET', URL, CLAIMS) });
    assert.equal(told(first), '401 use_dpop_nonce');
    assert.match(first.headers.get('www-authenticate') ?? '', /^DPoP realm="api", error="use_dpop_nonce"/);
    assert.match(first.headers.get('dpop-nonce') ?? '', /^[\w-]{43}$/);
  });
});

describe('a preflight', () => {
  const LISTED = 'https://app.example';

  const preflight = (origin: string, method: string): Fields => [
    ['Origin', origin],
    ['Access-Control-Request-Method', method],
  ];

  let crossOrigin: Policy;

  before(async () => {
    crossOrigin = await startPolicy(
      { routes, rules },
      {
        cors: cors({ origins: [LISTED, 'https://*.preview.example'] }),
        metadata: resourceMetadata({ url: 'https://api.test' }),
      },
    );
  });

  after(() => crossOrigin.stop());

  const asked = (uri: string, fields: Fields) =>
    crossOrigin.ask({ forwarded: asking('OPTIONS', uri), fields });

  test('of a listed origin for a path and method with a route passes with 204, without a token', async () => {
    for (const [uri, method] of [
      ['/orders/1', 'GET'],
      ['/orders/1', 'HEAD'],
      ['/orders/1', 'DELETE'],
      ['/orders?x', 'POST'],
      ['/healthz', 'GET'],
    ]) {
      const { status, headers } = await asked(uri!, preflight(LISTED, method!));
      assert.deepEqual([status, headers.get('access-control-allow-origin')], [204, LISTED], uri);
    }
    const { status } = await crossOrigin.ask({
      method: 'OPTIONS',
      target: '/forward-auth/orders/1',
      fields: preflight(LISTED, 'GET'),
    });
    assert.equal(status, 204);
  });

  test('of an origin with exactly one label in place of the * passes [§9]', async () => {
    const origin = 'https://pr-7.preview.example';
    const { status, headers } = await asked('/orders/1', preflight(origin, 'GET'));
    assert.deepEqual([status, headers.get('access-control-allow-origin')], [204, origin]);
    for (const other of ['https://a.b.preview.example', 'https://*.preview.example']) {
      assert.equal((await asked('/orders/1', preflight(other, 'GET'))).status, 403, other);
    }
  });

  test('passes with all four identity fields empty, since Caddy forwards a missing field as its placeholder [I1]', async () => {
    const { headers } = await asked('/orders/1', preflight(LISTED, 'GET'));
    const identity = [...headers].filter(([name]) => name.startsWith('x-auth-')).map(([, value]) => value);
    assert.deepEqual(identity, ['', '', '', '']);
  });

  test('for a method or path without a route is refused [I5]', async () => {
    const refused = [
      ['/orders/1', 'POST'],
      ['/orders/1', 'get'],
      ['/nothing', 'GET'],
      ['/orders/1/', 'GET'],
      ['/open/a;b', 'GET'],
      ['/orders/1', ''],
    ];
    for (const [uri, method] of refused) {
      assert.equal(
        told(await asked(uri!, preflight(LISTED, method!))),
        '403 insufficient_scope',
        `${uri} ${method}`,
      );
    }
    const twice = [...preflight(LISTED, 'GET'), ...preflight(LISTED, 'GET').slice(1)];
    assert.equal(told(await asked('/orders/1', twice)), '403 insufficient_scope');
  });

  test('of an origin that is not listed, or without cross-origin settings, is refused', async () => {
    for (const origin of ['https://evil.example', 'null', '']) {
      const { status, headers } = await asked('/orders/1', preflight(origin, 'GET'));
      assert.deepEqual([status, headers.has('access-control-allow-origin')], [403, false], origin);
    }
    const none = await policy.ask({
      forwarded: asking('OPTIONS', '/orders/1'),
      fields: preflight(LISTED, 'GET'),
    });
    assert.equal(told(none), '403 insufficient_scope');
  });

  test('is not sent for a simple request, whose refusal a page of a listed origin can read', async () => {
    const { status, headers } = await crossOrigin.ask({
      forwarded: asking('GET', '/me'),
      fields: [['Origin', LISTED]],
    });
    assert.deepEqual(
      [status, headers.get('access-control-allow-origin'), headers.get('vary')],
      [401, LISTED, 'Origin'],
    );
    assert.match(headers.get('access-control-expose-headers') ?? '', /WWW-Authenticate, DPoP-Nonce/);
  });

  test('to the service itself gets 404 or 405, or 204 for the metadata', async () => {
    const own = (target: string) =>
      crossOrigin.ask({ method: 'OPTIONS', target, fields: preflight(LISTED, 'GET') });

    assert.equal(told(await own('/orders/1')), '404 not_found');
    assert.equal(told(await own('/forward-auth')), '405 method_not_allowed');
    assert.equal((await own(METADATA)).status, 204);
  });
});

describe('the service itself', () => {
  test('has probes, which routes of the policy at the same paths do not change', async () => {
    assert.deepEqual((await policy.ask({ target: '/healthz' })).body, { status: 'ok' });
    assert.deepEqual((await policy.ask({ target: '/readyz' })).body, { status: 'ready' });
    assert.equal(told(await ask('GET', '/healthz')), '401 unauthorized');
    assert.equal(told(await ask('GET', '/readyz')), '200');
    assert.equal(told(await ask('GET', '/forward-auth')), '200');
  });

  test('serves no path but the documented ones, whatever fields are forwarded', async () => {
    for (const target of ['/', '/open/1', '/orders/1', '/nothing', '//forward-auth', '/x/../forward-auth']) {
      assert.equal(
        told(await policy.ask({ target, forwarded: asking('GET', '/open/1'), fields: READ })),
        '404 not_found',
      );
    }
    assert.equal(
      told(await policy.ask({ target: 'http://a/forward-auth', forwarded: asking('GET', '/open/1') })),
      '400 invalid_request',
    );
  });

  test('serves the metadata document at its own address only, not as a response to the proxy [RFC 9728 §3.1]', async (t) => {
    const resource = { metadata: resourceMetadata({ url: 'https://api.test' }) };
    const wellKnown = [under('/.well-known', authenticated)];
    const own = await startPolicy({ routes, rules: wellKnown }, resource);
    t.after(own.stop);
    assert.equal((await own.ask({ target: METADATA })).body.resource, 'https://api.test');

    const askAt = async (uri: string, fields: Fields = []) =>
      told(await own.ask({ forwarded: asking('GET', uri), fields }));

    assert.equal(await askAt(METADATA), '401 unauthorized');
    assert.equal(await askAt(METADATA, bearer()), '403 insufficient_scope');
    assert.equal(await askAt(`${METADATA}/`), '403 insufficient_scope');
    const { headers } = await own.ask({ forwarded: asking('GET', '/me') });
    const metadata = 'resource_metadata="https://api.test/.well-known/oauth-protected-resource"';
    assert.equal(headers.get('www-authenticate'), `${REALM}, ${metadata}, ${ALGS}, ${metadata}`);
  });

  test('passes no auth request about the path of the metadata, though a more general route matches it [RFC 9728 §3.1]', async (t) => {
    const resource = { metadata: resourceMetadata({ url: 'https://api.test' }) };
    const own = await startPolicy({ routes: [get('/.well-known/{name}', open, upstream)] }, resource);
    t.after(own.stop);
    const askAt = async (uri: string) => told(await own.ask({ forwarded: asking('GET', uri) }));
    assert.equal(await askAt('/.well-known/other'), '200');
    assert.equal(await askAt(METADATA), '403 insufficient_scope');
    assert.equal(await askAt(METADATA.replace('oauth', '%6Fauth')), '403 insufficient_scope');
  });

  test('passes an auth request by the most specific route of the policy, in any order', async (t) => {
    const two = [get('/u/{id}', open, upstream), get('/u/admin', needs(scope('admin')), upstream)];
    for (const all of [two, two.toReversed()]) {
      const own = await startPolicy({ routes: all });
      t.after(own.stop);

      const askAt = async (uri: string, fields: Fields = []) =>
        told(await own.ask({ forwarded: asking('GET', uri), fields }));

      assert.equal(await askAt('/u/7'), '200');
      assert.equal(await askAt('/u/admin'), '401 unauthorized');
      assert.equal(await askAt('/u/%61dmin', bearer()), '403 insufficient_scope');
    }
  });

  test('leaves the path of the metadata to a route of the policy when there is no metadata', async (t) => {
    const own = await startPolicy({ routes: [get(METADATA, authenticated, upstream)] });
    t.after(own.stop);
    assert.equal(told(await own.ask({ target: METADATA })), '404 not_found');
    assert.equal(told(await own.ask({ forwarded: asking('GET', METADATA) })), '401 unauthorized');
    assert.equal(told(await own.ask({ forwarded: asking('GET', METADATA), fields: bearer() })), '200');
  });

  test('is not ready once it stops, but still answers the proxy', async (t) => {
    const own = await startPolicy({ routes });
    t.after(own.stop);
    own.service.phase.isStopping = true;
    assert.equal(told(await own.ask({ target: '/readyz' })), '503 temporarily_unavailable');
    assert.equal(told(await own.ask({ forwarded: asking('GET', '/me'), fields: bearer() })), '200');
  });

  test('accepts tokens of several issuers, and passes on which one issued the token', async (t) => {
    const partner = { domain: 'partner.test', audience: 'https://api.test' };
    const own = await startPolicy({ routes }, { issuers: { partner } } as never);
    t.after(own.stop);
    const { headers } = await own.ask({
      forwarded: asking('GET', '/me'),
      fields: bearer({ iss: 'https://partner.test/' }),
    });
    assert.equal(headers.get('x-auth-issuer'), 'https://partner.test/');
  });
});

describe('log and metrics', () => {
  const last = () => {
    const { method, route, status, reason } = policy.logs.at(-1) ?? {};
    return [method, route, status, reason];
  };

  test('name the forwarded method and the route', async () => {
    await ask(
      'DELETE',
      '/orders/7?secret=1',
      bearer({ scope: 'write:orders', auth_time: Math.floor(Date.now() / 1000) }),
    );
    assert.deepEqual(last(), ['DELETE', '/orders/{id}', 200, undefined]);
    await policy.ask({ method: 'HEAD', forwarded: asking('POST', '/orders') });
    assert.deepEqual(last(), ['POST', '/orders', 401, 'no-credentials']);
    await askBehindPrefix('GET', '/orders/1', READ);
    assert.deepEqual(last(), ['GET', '/orders/{id}', 200, undefined]);
    await ask('PROPFIND', '/nothing');
    assert.deepEqual(last(), ['_OTHER', null, 403, 'route-missing']);

    const labels = 'http_route="/orders/{id}",http_request_method="DELETE",http_response_status_code="200"';
    assert.ok(policy.metrics().includes(`http_server_request_duration_seconds_count{${labels}} 1\n`));
  });

  test('name the method of the request itself if no method is forwarded', async () => {
    await policy.ask({ method: 'HEAD' });
    assert.deepEqual(last(), ['HEAD', null, 400, 'question-malformed']);
  });

  test('count and show requests for a route at the path of a probe, but not the probe', async () => {
    await ask('GET', '/healthz');
    assert.deepEqual(last(), ['GET', '/healthz', 401, 'no-credentials']);
    const lines = policy.logs.length;
    await policy.ask({ target: '/healthz' });
    assert.equal(policy.logs.length, lines);
    await ask('GET', '/healthz', bearer());
    assert.deepEqual(last(), ['GET', '/healthz', 200, undefined]);
    assert.match(policy.metrics(), /^gatehouse_refusals_total\{reason="no-credentials"\} [1-9]/m);
  });

  test('have every series of the policy from the start', async (t) => {
    const own = await startPolicy({ routes });
    t.after(own.stop);
    for (const route of routes) {
      const labels = `http_route="${route.pattern}",http_request_method="${route.method}",http_response_status_code="200"`;
      assert.ok(
        own.metrics().includes(`http_server_request_duration_seconds_count{${labels}} 0\n`),
        route.pattern,
      );
    }
  });

  test('never show a token', () => {
    const text = JSON.stringify(policy.logs);
    assert.ok(!text.includes('eyJ') && !text.includes(issuer.token().slice(0, 20)));
  });
});

test('onResponse is told the method and path that the proxy asks about, a refused path too [§19, §28]', async (t) => {
  const heard: unknown[] = [];
  const onResponse = ({ method, path }: ResponseEvent) => heard.push([method, path]);
  const own = await startPolicy({ routes }, { onResponse });
  t.after(own.stop);
  const uris = ['/nowhere?secret', '/a%2fb', '/a;b', '/a\\b?c', '/a#b', '/a/', '//a', '/a/%2e'];
  for (const uri of uris) await own.ask({ forwarded: asking('PUT', uri) });
  await own.ask({ method: 'PUT', target: '/forward-auth/a%00?c' });
  await own.ask({});

  const asked = [...uris, '/a%00'].map((uri) => ['PUT', uri.split('?')[0]]);
  assert.deepEqual(heard, [...asked, ['GET', '/forward-auth']]);
});

/* Certificate-bound tokens over sockets: a service and a policy behind a proxy, and a gate in an https server. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer, request as requestHttp, type IncomingMessage } from 'node:http';
import { createServer, request, type ServerOptions } from 'node:https';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { clientCertificates, type ClientCertificatesOptions } from '../../src/certificates.ts';
import {
  authenticated,
  createGate,
  createService,
  get,
  mount,
  needs,
  open,
  optional,
  scope,
  upstream,
  type GateOptions,
} from '../../src/gatehouse.ts';
import { cors } from '../../src/cors.ts';
import { resourceMetadata } from '../../src/resource-metadata.ts';
import { createProofKey } from '../../src/testing.ts';
import { makeIssuer } from '../support/issuer.ts';
import { client, FIELDS, otherClient, SOURCES, tlsFile, written } from './certificates-fixture.ts';
import { asking, bearer as asBearer, startPolicy } from './forward-auth-fixture.ts';

const issuer = makeIssuer();
const key = createProofKey();

const bound = (claims: object = {}) => issuer.bearer({ cnf: { 'x5t#S256': client.thumbprint }, ...claims });

const PEM = { source: 'pem', proxies: ['127.0.0.1', '::1'] } as const;

type Headers = Readonly<Record<string, string | readonly string[]>>;

interface Reply {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly challenges: readonly string[];
  readonly body: any;
}

async function replyFrom(response: IncomingMessage): Promise<Reply> {
  let text = '';
  for await (const chunk of response) text += chunk;
  const { statusCode: status, headers, headersDistinct } = response;
  const body = text === '' ? undefined : JSON.parse(text);
  return { status, headers, challenges: headersDistinct['www-authenticate'] ?? [], body };
}

async function ask(url: string, headers: Headers = {}, method = 'GET'): Promise<Reply> {
  const asked = requestHttp(url, { method, headers: headers as Record<string, string>, agent: false });
  asked.end();
  const [response] = await once(asked, 'response');
  return replyFrom(response);
}

const described = (sentence: string, scheme = 'Bearer realm="api"') =>
  `${scheme}, error="invalid_token", error_description="${sentence}"`;

describe('a service behind a proxy', () => {
  const seen: object[] = [];
  const routes = [
    get('/me', authenticated, ({ headers, caller }) => {
      seen.push(headers);
      return { subject: caller.subject };
    }),
    get('/orders', needs(scope('read')), () => ({})),
    get('/maybe', optional, ({ headers }) => {
      seen.push(headers);
      return {};
    }),
    get('/open', open, ({ headers }) => {
      seen.push(headers);
      return {};
    }),
    mount('/mounted', authenticated, (request) => {
      seen.push(Object.fromEntries(request.headers));
      return new Response('{}');
    }),
  ];

  async function start(t: TestContext, options: ClientCertificatesOptions, more: Partial<GateOptions> = {}) {
    const own = { ...issuer.options, host: '127.0.0.1', port: 0, ...more };
    const service = createService({ routes }, { ...own, clientCertificates: clientCertificates(options) });
    t.after(() => service.stop());
    return service.listen();
  }

  for (const source of SOURCES) {
    test(`lets a bound token pass with its certificate alone, written as ${source} [RFC 8705 §3, J1, J2]`, async (t) => {
      const url = await start(t, { source, proxies: ['127.0.0.0/8'] });
      const name = FIELDS[source];

      const sent = async (...values: string[]) => {
        const { status, challenges } = await ask(`${url}/me`, { ...bound(), [name.toLowerCase()]: values });
        return [status, challenges[0]];
      };

      assert.deepEqual(await sent(written(source, client.der)), [200, undefined]);
      const missing = described('the token is bound to a client certificate, but the request has none');
      assert.deepEqual(await sent(), [401, missing]);
      assert.deepEqual(await sent(''), [401, missing]);
      const mismatch = described('the token is bound to another client certificate');
      assert.deepEqual(await sent(written(source, otherClient.der)), [401, mismatch]);
      const malformed = described('the client certificate that the proxy passed on cannot be read');
      assert.deepEqual(await sent('x'), [401, malformed]);
      const twice = [written(source, otherClient.der), written(source, client.der)];
      assert.deepEqual(await sent(...twice), [401, malformed]);
    });
  }

  test('believes only the proxies of its list [J1]', async (t) => {
    const url = await start(t, { source: 'pem', proxies: ['192.0.2.1', '::/0'] });
    const { status, challenges } = await ask(`${url}/me`, {
      ...bound(),
      'X-Client-Cert': written('pem', client.der),
    });
    assert.equal(status, 401);
    assert.equal(challenges[0], described('the client certificate did not come from a trusted proxy'));
    assert.equal(challenges.length, 2);
  });

  test('counts an IPv4-mapped peer as IPv4', async (t) => {
    const url = await start(t, { source: 'pem', proxies: ['127.0.0.1'] }, { host: '::' } as object);
    const port = new URL(url).port;
    const field = { 'X-Client-Cert': written('pem', client.der) };
    assert.equal((await ask(`http://127.0.0.1:${port}/me`, { ...bound(), ...field })).status, 200);
    assert.equal((await ask(`http://[::1]:${port}/me`, { ...bound(), ...field })).status, 401);
  });

  test('takes no field of a similar name for it [J1]', async (t) => {
    const url = await start(t, { source: 'rfc9440', proxies: 'any' });
    const good = written('rfc9440', client.der);
    const { status, challenges } = await ask(`${url}/me`, { ...bound(), Client_Cert: good });
    assert.deepEqual([status, challenges[0]?.includes('but the request has none')], [401, true]);
    const both = await ask(`${url}/me`, { ...bound(), Client_Cert: 'x', 'Client-Cert': good });
    assert.equal(both.status, 200);
  });

  test('refuses a token without certificate where one is required, but not one that is bound to a key [RFC 9449 §7.1]', async (t) => {
    const url = await start(t, { ...PEM, required: true }, { publicUrl: 'https://api.test' });
    const { status, challenges } = await ask(`${url}/me`, {
      ...issuer.bearer(),
      'X-Client-Cert': written('pem', client.der),
    });
    const sentence = 'the token is not bound to a client certificate, which this API requires';
    assert.deepEqual([status, challenges[0]], [401, described(sentence)]);
    const token = issuer.boundToken(key);
    const proof = issuer.proof(key, { method: 'GET', url: 'https://api.test/me' }, token);
    assert.equal((await ask(`${url}/me`, { authorization: `DPoP ${token}`, dpop: proof })).status, 200);
  });

  test('needs certificate and proof of a token that is bound to both, and names the scheme that was used [J2]', async (t) => {
    const url = await start(t, PEM, { publicUrl: 'https://api.test' });
    const token = issuer.boundToken(key, { cnf: { jkt: key.thumbprint, 'x5t#S256': client.thumbprint } });

    const sent = (der: Buffer | undefined) => {
      const dpop = issuer.proof(key, { method: 'GET', url: 'https://api.test/me' }, token);
      const field = der === undefined ? {} : { 'X-Client-Cert': written('pem', der) };
      return ask(`${url}/me`, { authorization: `DPoP ${token}`, dpop, ...field });
    };

    assert.equal((await sent(client.der)).status, 200);
    const { status, challenges } = await sent(otherClient.der);
    assert.equal(status, 401);
    assert.equal(challenges[0], 'Bearer realm="api"');
    assert.match(
      challenges[1] ?? '',
      /^DPoP error="invalid_token", error_description="the token is bound to another client certificate", algs="/,
    );
    const alone = await ask(`${url}/me`, {
      authorization: `Bearer ${token}`,
      'X-Client-Cert': written('pem', client.der),
    });
    assert.equal(alone.challenges[0], described('the token is bound (cnf) but was presented as Bearer'));
  });

  test('never ignores a binding, also with DPoP off [J2]', async (t) => {
    const url = await start(t, PEM, { dpopMode: 'DISABLED' });
    assert.equal((await ask(`${url}/me`, issuer.bearer())).status, 200);
    for (const cnf of [{ jkt: 'x' }, { kid: 'x' }, null]) {
      const { status, challenges } = await ask(`${url}/me`, issuer.bearer({ cnf }));
      const sentence = 'the token has a confirmation (cnf) that cannot be checked here';
      assert.deepEqual([status, challenges], [401, [described(sentence)]]);
    }
    assert.equal((await ask(`${url}/me`, bound())).status, 401);
  });

  test('checks the token first, and access last', async (t) => {
    const url = await start(t, PEM);
    const expired = await ask(`${url}/me`, bound({ exp: 1 }));
    assert.equal(expired.challenges[0], described('the token has expired'));
    assert.equal((await ask(`${url}/orders`, bound())).status, 401);
    const field = { 'X-Client-Cert': written('pem', client.der) };
    assert.equal((await ask(`${url}/orders`, { ...bound(), ...field })).status, 403);
  });

  test('looks at no certificate where no token is checked', async (t) => {
    const url = await start(
      t,
      { source: 'pem', proxies: ['192.0.2.1'], required: true },
      {
        metadata: resourceMetadata({ url: 'https://api.test' }),
        cors: cors({ origins: ['https://app.test'] }),
      },
    );
    const field = { 'X-Client-Cert': 'forged' };
    const metadata = '/.well-known/oauth-protected-resource';
    for (const path of ['/open', '/maybe', '/healthz', metadata]) {
      assert.equal((await ask(`${url}${path}`, field)).status, 200, path);
    }
    assert.equal((await ask(`${url}/open`, { ...bound(), ...field })).status, 200);
    const preflight = { ...field, Origin: 'https://app.test', 'Access-Control-Request-Method': 'GET' };
    assert.equal((await ask(`${url}/me`, preflight, 'OPTIONS')).status, 204);
    assert.equal((await ask(`${url}/maybe`, { ...bound(), ...field })).status, 401);
  });

  test('shows its field to no handler and no mount, and every other field', async (t) => {
    const url = await start(t, PEM);
    const fields = { 'X-CLIENT-CERT': written('pem', client.der), X_Client_Cert: 'a', 'Client-Cert': 'b' };
    for (const [path, own] of [
      ['/me', bound()],
      ['/mounted/x', bound()],
      ['/me', issuer.bearer()],
      ['/maybe', {}],
      ['/open', {}],
    ] as const) {
      seen.length = 0;
      assert.equal((await ask(`${url}${path}`, { ...own, ...fields })).status, 200);
      const [headers = {}] = seen;
      const names = Object.keys(headers).filter((name) => /cert/.test(name));
      assert.deepEqual(names.sort(), ['client-cert', 'x_client_cert']);
    }
  });

  test('says in its metadata that tokens may be bound to certificates [RFC 9728 §2]', async (t) => {
    const metadata = () =>
      resourceMetadata({ url: 'https://api.test', documentation: 'https://api.test/docs' });

    const url = await start(t, PEM, { metadata: metadata() });
    const { body } = await ask(`${url}/.well-known/oauth-protected-resource`);
    const names = Object.keys(body);
    assert.equal(body.tls_client_certificate_bound_access_tokens, true);
    const at = names.indexOf('tls_client_certificate_bound_access_tokens');
    assert.equal(names[at - 1], 'resource_documentation');
    assert.ok(names[at + 1]?.startsWith('dpop_'));

    const plain = createService({ routes }, { ...issuer.options, port: 0, metadata: metadata() });
    t.after(() => plain.stop());
    const without = await ask(`${await plain.listen()}/.well-known/oauth-protected-resource`);
    assert.ok(!('tls_client_certificate_bound_access_tokens' in without.body));
  });
});

describe('a policy behind a proxy', () => {
  const routes = [get('/me', authenticated, upstream), get('/open', open, upstream)];

  test('reads the field of the auth request, which the proxy sends [J1]', async (t) => {
    for (const [proxies, expected] of [
      [['127.0.0.1'], [200, 401, 401, 200]],
      [['192.0.2.1'], [401, 401, 401, 200]],
    ] as const) {
      const given = { clientCertificates: clientCertificates({ source: 'pem', proxies }) };
      const policy = await startPolicy({ routes }, given);
      t.after(() => policy.stop());
      const cnf = { 'x5t#S256': client.thumbprint };
      const token = asBearer({ cnf });
      const own = ['X-Client-Cert', written('pem', client.der)] as const;
      const other = ['X-Client-Cert', written('pem', otherClient.der)] as const;
      const asked = [[...token, own], [...token, other], token].map((fields) => ({ fields, path: '/me' }));
      const found: number[] = [];
      for (const { fields, path } of [...asked, { fields: [other], path: '/open' }]) {
        const inFields = await policy.ask({ forwarded: asking('GET', path), fields });
        const inPath = await policy.ask({ target: `/forward-auth${path}`, fields });
        assert.equal(inFields.status, inPath.status);
        found.push(inFields.status);
        // Nothing of it goes on to the server behind, or into the log.
        const shown = JSON.stringify([...inFields.headers, policy.logs]);
        assert.ok(!shown.includes(client.thumbprint) || inFields.headers.has('x-auth-claims'));
        assert.ok(!shown.includes('MIIB'));
      }
      assert.deepEqual(found, expected);
    }
  });
});

const SERVER: ServerOptions = {
  key: tlsFile('provider-key'),
  cert: tlsFile('provider'),
  requestCert: true,
  rejectUnauthorized: false,
};

/** An https server with a gate, which says how each request came. */
async function startHttps(t: TestContext, options: ServerOptions, given: Partial<GateOptions> = {}) {
  const part = clientCertificates({ source: 'tls' });
  const gate = createGate({ ...issuer.options, clientCertificates: part, ...given });
  const server = createServer({ ...SERVER, ...options }, async (incoming, response) => {
    const admission = await gate.admit(incoming, response, authenticated);
    const { isSessionReused } = Object(incoming.socket);
    const isReused = Reflect.apply(isSessionReused, incoming.socket, []);
    if (admission) response.end(JSON.stringify({ isReused }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    gate.close();
    server.closeAllConnections();
    server.close();
  });
  return server.address() as AddressInfo;
}

interface Call {
  readonly port: number;
  readonly presents?: { readonly pem: string; readonly key: string } | undefined;
  readonly session?: Buffer | undefined;
  readonly headers?: Record<string, string>;
  readonly version?: 'TLSv1.2' | 'TLSv1.3';
}

/** A request on a connection of its own, and the session that its server gave. */
async function call({ port, presents, session, headers = bound(), version }: Call) {
  const versions = version === undefined ? {} : { minVersion: version, maxVersion: version };
  const own = presents === undefined ? {} : { cert: presents.pem, key: presents.key };
  const socket = connect({ port, host: '127.0.0.1', ca: tlsFile('authority'), session, ...versions, ...own });
  const sessions: Buffer[] = [];
  socket.on('session', (given: Buffer) => sessions.push(given));
  const asked = request({ createConnection: () => socket as TLSSocket, headers, path: '/' });
  asked.end();
  const [response] = await once(asked, 'response');
  const reply = await replyFrom(response);
  socket.destroy();
  return { ...reply, session: sessions.at(-1) };
}

describe('a gate in an https server', () => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`compares the certificate of the connection, under ${version} [RFC 8705 §3, J2]`, async (t) => {
      const { port } = await startHttps(t, {});
      assert.equal((await call({ port, version, presents: client })).status, 200);
      const none = await call({ port, version });
      const missing = 'the token is bound to a client certificate, but the request has none';
      assert.deepEqual([none.status, none.challenges[0]], [401, described(missing)]);
      const other = await call({ port, version, presents: otherClient });
      const mismatch = 'the token is bound to another client certificate';
      assert.deepEqual([other.status, other.challenges[0]], [401, described(mismatch)]);
      const forged = { ...bound(), 'Client-Cert': written('rfc9440', client.der) };
      assert.equal((await call({ port, version, headers: forged })).status, 401);
    });

    test(`finds it in a session that is resumed under ${version}, and no other there [RFC 8705 §3]`, async (t) => {
      const { port } = await startHttps(t, {});
      const first = await call({ port, version, presents: client });
      assert.ok(first.session !== undefined);
      for (const presents of [client, undefined]) {
        const { status, body } = await call({ port, version, presents, session: first.session });
        assert.deepEqual([status, body], [200, { isReused: true }]);
      }
      const ofOther = await call({ port, version, presents: otherClient, headers: issuer.bearer() });
      assert.equal(ofOther.status, 200);
      const resumed = await call({ port, version, presents: client, session: ofOther.session });
      assert.match(resumed.challenges[0] ?? '', /the token is bound to another client certificate/);
      const ofNone = await call({ port, version, headers: issuer.bearer() });
      const still = await call({ port, version, presents: client, session: ofNone.session });
      assert.match(still.challenges[0] ?? '', /but the request has none/);
    });
  }

  test('has no certificate if the server does not ask for one', async (t) => {
    const { port } = await startHttps(t, { requestCert: false });
    const { status, challenges } = await call({ port, presents: client });
    assert.equal(status, 401);
    assert.match(challenges[0] ?? '', /but the request has none/);
  });

  test('reads the field of a proxy that speaks TLS with it, if that is the source', async (t) => {
    const part = clientCertificates({ source: 'rfc9440', proxies: ['127.0.0.1'] });
    const { port } = await startHttps(t, { requestCert: false }, { clientCertificates: part });
    const headers = { ...bound(), 'Client-Cert': written('rfc9440', client.der) };
    assert.equal((await call({ port, headers })).status, 200);
  });
});

describe('a gate that is given a Fetch Request', () => {
  async function checked(options: ClientCertificatesOptions, fields: readonly (readonly [string, string])[]) {
    const gate = createGate({ ...issuer.options, clientCertificates: clientCertificates(options) });
    const headers = new Headers(bound());
    for (const [name, value] of fields) headers.append(name, value);
    const { refusal } = await gate.check(new Request('http://api.test/me', { headers }), authenticated);
    gate.close();
    const challenge = refusal?.headers.find(([name]) => name === 'WWW-Authenticate')?.[1];
    return refusal === undefined ? 'admitted' : /description="(.*?)"/.exec(challenge ?? '')?.[1];
  }

  test('counts its field only with any: it has no peer address [J1]', async () => {
    for (const source of SOURCES) {
      const field = [FIELDS[source], written(source, client.der)] as const;
      assert.equal(await checked({ source, proxies: 'any' }, [field]), 'admitted');
      const untrusted = 'the client certificate did not come from a trusted proxy';
      assert.equal(await checked({ source, proxies: ['0.0.0.0/0', '::/0'] }, [field]), untrusted);
    }
  });

  test('refuses repeated fields, which Fetch joins with a comma [J1]', async () => {
    for (const source of ['rfc9440', 'pem', 'xfcc'] as const) {
      const field = [FIELDS[source], written(source, client.der)] as const;
      const malformed = 'the client certificate that the proxy passed on cannot be read';
      assert.equal(await checked({ source, proxies: 'any' }, [field, field]), malformed);
    }
  });

  test('finds no certificate in it where TLS is the source', async () => {
    const missing = 'the token is bound to a client certificate, but the request has none';
    assert.equal(
      await checked({ source: 'tls' }, [['Client-Cert', written('rfc9440', client.der)]]),
      missing,
    );
  });
});

/** Asks a gate of a server over a Unix socket, with these values of the field. */
async function statusOverSocket(t: TestContext, isOfFetch: boolean, values: readonly string[]) {
  const part = clientCertificates({ source: 'base64', proxies: 'any' });
  const gate = createGate({ ...issuer.options, clientCertificates: part });
  const server = createHttpServer(async (incoming, response) => {
    // As SvelteKit's server makes it.
    const headers = Object.entries(incoming.headers) as [string, string][];
    const given = isOfFetch ? new Request('http://api.test/', { headers }) : incoming;
    const { refusal } = await gate.check(given, authenticated);
    response.writeHead(refusal?.status ?? 200).end();
  });
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  const socketPath = join(folder, 'server');
  server.listen(socketPath);
  await once(server, 'listening');
  t.after(() => {
    gate.close();
    server.close();
    rmSync(folder, { recursive: true });
  });
  const headers = [
    ...['Host', 'api.test'],
    ...Object.entries(bound()).flat(),
    ...values.flatMap((value) => [FIELDS.base64, value]),
  ];
  const asked = requestHttp({ socketPath, headers, agent: false });
  asked.end();
  const [response] = await once(asked, 'response');
  response.resume();
  return response.statusCode;
}

const mine = written('base64', client.der);

for (const [what, values, ofNode, ofFetch] of [
  ['one field', [mine], 200, 200],
  ['one field with a list', [`${mine},AAAA`], 200, 200],
  ['one field that could be two', [`${mine}, AAAA`], 200, 401],
  ['one field that could be two, of which one is empty', [`${mine},`], 200, 401],
  ['two fields', [mine, 'AAAA'], 401, 401],
  ['two fields, of which the first is empty', ['', mine], 401, 401],
  ['two fields, of which the second is empty', [mine, ''], 401, 401],
  ['three fields, of which two are empty', [mine, '', ''], 401, 401],
] as const) {
  test(`a gate tells ${what} by the kind of the request, not by its peer address [§21, J1]`, async (t) => {
    assert.equal(await statusOverSocket(t, false, values), ofNode, 'a request of Node');
    assert.equal(await statusOverSocket(t, true, values), ofFetch, 'a Request');
  });
}

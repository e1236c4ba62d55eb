/* The introspection request itself, over real TLS: its form, what authenticates it, where it goes, which
   connection carries it, and what of a response is too much (docs/introspection.md). */
import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { checkServerIdentity, type PeerCertificate, type TLSSocket } from 'node:tls';
import { keyAccess } from '../../../src/key-access.ts';
import {
  createAssertion,
  createBasic,
  signingKeyIn,
  type Authenticate,
} from '../../../src/options/introspection/client.ts';
import { IntrospectionEndpoint, type Asker } from '../../../src/options/introspection/endpoint.ts';
import { Questions } from '../../../src/options/introspection/questions.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { connectDirectly, type Connect } from '../../../src/verify/keys/fetch.ts';
import { FetchError } from '../../../src/verify/keys/jwks.ts';
import { issuerOf } from '../../../src/verify/options.ts';
import { startProxy } from '../../idp/proxy.ts';
import { identity, startRawServer } from '../../idp/raw-server.ts';
import { floodWithRecords } from '../../idp/tls-flood.ts';
import { TestClock } from '../../support/clock.ts';
import { withReason } from '../../support/skipped.ts';
import { connectThrough } from '../../verify/keys/fetch-fixture.ts';
import { NOW } from '../../verify/token/issuer.ts';
import { CLUSTER_AUTHORITY, directoryFor, USUAL_AUTHORITY } from '../key-access-fixture.ts';
import { json, startEndpoint, type FakeEndpoint } from './endpoint-fixture.ts';

const IPV6_CERTIFICATE = { subjectaltname: 'IP Address:0:0:0:0:0:0:0:1' } as PeerCertificate;

const TOKEN = 'secret-opaque_token.~+/==';

const BASIC = createBasic('orders-api', 'x');

interface Plan {
  readonly authenticate?: Authenticate;
  readonly proxy?: string;
  readonly isDiscovered?: boolean;
  readonly files?: Parameters<typeof keyAccess>[0];
}

function askerFor(
  { domain, issuer, uri }: Pick<FakeEndpoint, 'domain' | 'issuer' | 'uri'>,
  plan: Plan = {},
): IntrospectionEndpoint {
  const { authenticate = BASIC, proxy, isDiscovered, files } = plan;
  const options = { domain, issuer, audience: 'x', ...(files && { keyAccess: keyAccess(files) }) };
  const connect = proxy === undefined ? undefined : connectThrough(proxy);
  return new IntrospectionEndpoint(issuerOf(options), isDiscovered ? undefined : uri, authenticate, connect);
}

const far = () => AbortSignal.timeout(60_000);

const ask = (asker: Asker, token = TOKEN) => asker.ask(token, far());

/** The reason and code with which an introspection request fails. */
async function failureOf(asker: Asker): Promise<readonly [string, string]> {
  try {
    await ask(asker);
  } catch (thrown) {
    if (FetchError.is(thrown)) return [thrown.reason, thrown.code];
    throw thrown;
  }
  return assert.fail('there was an answer');
}

describe('the introspection request', () => {
  test('is a form with the token and a hint, and asks for JSON [§22, RFC 7662 §2.1]', async (t) => {
    const endpoint = await startEndpoint(t);
    endpoint.say = json({ active: true, a: [1] });
    assert.deepEqual(await ask(askerFor(endpoint)), { active: true, a: [1] });
    const [{ method, path, headers, form } = assert.fail('nothing was asked')] = endpoint.questions;
    assert.deepEqual([method, path], ['POST', '/introspect']);
    assert.deepEqual(
      [...form],
      [
        ['token', TOKEN],
        ['token_type_hint', 'access_token'],
      ],
    );
    assert.equal(headers['content-type'], 'application/x-www-form-urlencoded');
    assert.equal(headers.accept, 'application/json');
    assert.equal(headers['accept-encoding'], 'identity');
    assert.match(headers['user-agent'] ?? '', /^gatehouse\/\d/);
  });

  test('authenticates with id and secret, form-encoded before Basic [§22, RFC 6749 §2.3.1]', async (t) => {
    const endpoint = await startEndpoint(t);
    await ask(askerFor(endpoint, { authenticate: createBasic('a b:ü', 'p%:+&=/*') }));
    const [{ headers, form } = assert.fail('nothing was asked')] = endpoint.questions;
    const [scheme, encoded = ''] = headers.authorization?.split(' ') ?? [];
    assert.equal(scheme, 'Basic');
    assert.equal(Buffer.from(encoded, 'base64').toString(), 'a+b%3A%C3%BC:p%25%3A%2B%26%3D%2F*');
    assert.equal(form.has('client_id'), false);
  });

  for (const [alg, digest, make] of [
    ['PS256', 'sha256', () => generateKeyPairSync('rsa', { modulusLength: 2048 })],
    ['ES256', 'sha256', () => generateKeyPairSync('ec', { namedCurve: 'P-256' })],
    ['ES384', 'sha384', () => generateKeyPairSync('ec', { namedCurve: 'P-384' })],
    ['EdDSA', null, () => generateKeyPairSync('ed25519')],
  ] as const) {
    test(`authenticates each time with a new assertion, signed with ${alg} [§22, RFC 7523 §3]`, async (t) => {
      const endpoint = await startEndpoint(t);
      const pair = make();
      const content = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
      const publicKey = createPublicKey(content);
      const key = signingKeyIn(content) ?? assert.fail('the key is refused');
      const { issuer } = endpoint;
      const clock = new TestClock(NOW * 1000 + 999);
      const options = { clientId: 'orders-api', issuer, keyId: alg === 'PS256' ? undefined : 'key-1' };
      const asker = askerFor(endpoint, { authenticate: createAssertion(options, key, clock) });
      await ask(asker);
      await ask(asker);

      const ids = endpoint.questions.map(({ headers, form }) => {
        assert.deepEqual(
          [...form.keys()],
          ['token', 'token_type_hint', 'client_assertion_type', 'client_assertion'],
        );
        assert.equal(
          form.get('client_assertion_type'),
          'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        );
        assert.equal(headers.authorization, undefined);
        const assertion = form.get('client_assertion')!;
        // RFC 7515 §3.1
        assert.match(assertion, /^[\w-]+\.[\w-]+\.[\w-]+$/);
        const [head = '', payload = '', signature = ''] = assertion.split('.');
        const parse = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
        const { jti, ...claims } = parse(payload);
        assert.deepEqual(parse(head), options.keyId === undefined ? { alg } : { alg, kid: 'key-1' });
        assert.deepEqual(claims, { iss: 'orders-api', sub: 'orders-api', aud: issuer, exp: NOW + 60 });
        const padding = alg === 'PS256' ? { padding: 6, saltLength: 32 } : {};
        const input = { key: publicKey, dsaEncoding: 'ieee-p1363', ...padding } as const;
        const signed = Buffer.from(`${head}.${payload}`);
        assert.ok(verify(digest, signed, input, Buffer.from(signature, 'base64url')));
        return String(jti);
      });
      assert.ok(ids.every((id) => Buffer.from(id, 'base64url').length === 16));
      assert.notEqual(ids[0], ids[1]);
    });
  }
});

describe('the address', () => {
  test('is that of the discovery document, kept until an introspection request fails [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    const asker = askerFor(endpoint, { isDiscovered: true });
    assert.equal(asker.address(), undefined);
    await Promise.all([ask(asker), ask(asker)]);
    await ask(asker);
    assert.deepEqual([endpoint.fetches, endpoint.questions.length], [1, 3]);
    assert.equal(asker.address(), endpoint.uri);

    endpoint.document = { issuer: endpoint.issuer, introspection_endpoint: `${endpoint.issuer}moved` };
    await ask(asker);
    asker.forget();
    await ask(asker);
    assert.deepEqual(
      endpoint.questions.map(({ path }) => path),
      ['/introspect', '/introspect', '/introspect', '/introspect', '/moved'],
    );
  });

  test('is not discovered if the options name it [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    const asker = askerFor(endpoint);
    await ask(asker);
    assert.deepEqual([endpoint.fetches, asker.address()], [0, endpoint.uri]);
  });

  for (const [what, change, failure] of [
    ['does not exist', () => undefined, ['status-refused', '404']],
    [
      'names another issuer',
      (it) => ({ ...it, issuer: 'https://x.test/' }),
      ['issuer-mismatch', 'https://x.test/'],
    ],
    ['names no issuer', (it) => ({ ...it, issuer: undefined }), ['issuer-mismatch', '']],
    ['names its issuer in a list', (it) => ({ ...it, issuer: [it.issuer] }), ['issuer-mismatch', '']],
    ['has no endpoint', ({ issuer }) => ({ issuer }), ['address-refused', '']],
    [
      'has an endpoint that is no text',
      ({ issuer }) => ({ issuer, introspection_endpoint: 1 }),
      ['address-refused', ''],
    ],
    [
      'has an endpoint without TLS',
      ({ issuer }) => ({ issuer, introspection_endpoint: 'http://localhost/' }),
      ['address-refused', ''],
    ],
    [
      'has an endpoint with a user',
      ({ issuer, domain }) => ({ issuer, introspection_endpoint: `https://u@${domain}/` }),
      ['address-refused', ''],
    ],
  ] as readonly (readonly [string, (it: FakeEndpoint) => object | undefined, readonly string[]])[]) {
    test(`is none if the discovery document ${what}: no token is sent [§22]`, async (t) => {
      const endpoint = await startEndpoint(t);
      endpoint.document = change(endpoint);
      assert.deepEqual(await failureOf(askerFor(endpoint, { isDiscovered: true })), failure);
      assert.deepEqual(endpoint.questions, []);
    });
  }

  test('is none if the discovery document names its issuer with another ending: no token is sent [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    const { issuer } = endpoint;
    for (const other of [`${issuer}/`, issuer.slice(0, -1), `${issuer}x`]) {
      endpoint.document = { ...endpoint, issuer: other };
      const failure = await failureOf(askerFor(endpoint, { isDiscovered: true }));
      assert.deepEqual(failure, ['issuer-mismatch', other]);
    }
    assert.deepEqual(endpoint.questions, []);
  });

  for (const status of [400, 401, 403, 500]) {
    test(`is looked for again after each discovery document of status ${status}, which is a failure [§22]`, async (t) => {
      const endpoint = await startEndpoint(t);
      endpoint.documentStatus = status;
      const logs: unknown[] = [];
      const around = {
        clock: new TestClock(NOW * 1000),
        count: undefined,
        log: (event: string, { reason, code }: Record<string, unknown>) =>
          void logs.push([event, reason, code].filter(Boolean)),
      };
      const questions = new Questions('idp', askerFor(endpoint, { isDiscovered: true }), around);
      // The second one, too: it is forgotten although the issuer is lost already.
      for (const digest of ['a', 'b']) {
        assert.ok((await questions.answerTo(TOKEN, digest)) instanceof Refused);
      }
      assert.equal(endpoint.fetches, 2);

      endpoint.documentStatus = undefined;
      const answer = await questions.answerTo(TOKEN, 'digest');
      assert.ok(!(answer instanceof Refused));
      assert.deepEqual(logs, [
        ['introspection lost', 'status-refused', String(status)],
        ['introspection ready'],
      ]);
    });
  }

  test('is kept after a 400, which is no failure: clients choose the tokens that get one [§22, J16]', async (t) => {
    const endpoint = await startEndpoint(t);
    const around = { clock: new TestClock(NOW * 1000), count: undefined, log: () => {} };
    const questions = new Questions('idp', askerFor(endpoint, { isDiscovered: true }), around);
    endpoint.say = json({ error: 'invalid_request' }, 400);
    for (const digest of ['a', 'b']) assert.ok((await questions.answerTo(TOKEN, digest)) instanceof Refused);
    assert.deepEqual([endpoint.fetches, endpoint.questions.length], [1, 2]);
  });

  test('is looked for with errors of the network alone: a bug stays one', async (t) => {
    const endpoint = await startEndpoint(t);
    const connect = () => Promise.reject(new RangeError('bug'));
    const options = issuerOf({ domain: endpoint.domain, audience: 'x' });
    await assert.rejects(ask(new IntrospectionEndpoint(options, undefined, BASIC, connect)), RangeError);
  });

  test('is reached through the proxy alone, which sees no token [§22, §7]', async (t) => {
    const endpoint = await startEndpoint(t);
    const proxy = await startProxy();
    t.after(() => proxy.stop());
    const asker = askerFor(endpoint, { isDiscovered: true, proxy: `http://localhost:${proxy.port}` });
    await ask(asker);
    await ask(asker);
    // One tunnel for discovery, and one that is kept.
    assert.deepEqual(
      proxy.asked.map(({ target }) => target),
      [endpoint.domain, endpoint.domain],
    );
    assert.doesNotMatch(JSON.stringify(proxy.asked), /secret/);
  });
});

describe('the authorities', () => {
  test('are those of the issuer alone, and its token is not shown, to the discovery document either [§25, J9]', async (t) => {
    const endpoint = await startEndpoint(t, 'cluster');
    const tokenFile = directoryFor(t)('token', 'a-token');
    const asker = askerFor(endpoint, { isDiscovered: true, files: { caFile: CLUSTER_AUTHORITY, tokenFile } });
    await ask(asker);
    assert.match(endpoint.questions[0]?.headers.authorization ?? '', /^Basic /);
    assert.deepEqual([endpoint.fetches, endpoint.documentHeaders[0]?.authorization], [1, undefined]);
    assert.equal((await failureOf(askerFor(endpoint)))[0], 'certificate-refused');
    const other = await startEndpoint(t);
    assert.equal(
      (await failureOf(askerFor(other, { files: { caFile: CLUSTER_AUTHORITY } })))[0],
      'certificate-refused',
    );
  });

  test('are read for each new connection; a token file that is wrong by then matters to none [§25]', async (t) => {
    const endpoint = await startEndpoint(t, 'cluster');
    const write = directoryFor(t);
    const caFile = write('ca.pem', readFileSync(CLUSTER_AUTHORITY));
    const tokenFile = write('token', 'a-token');
    const asker = askerFor(endpoint, { files: { caFile, tokenFile } });
    write('token', 'no token');
    await ask(asker);
    write('ca.pem', readFileSync(USUAL_AUTHORITY));
    // The connection that is kept was checked.
    await ask(asker);
    assert.equal(endpoint.connections, 1);
    for (const socket of endpoint.sockets) socket.destroy();
    assert.equal((await failureOf(asker))[0], 'certificate-refused');
    write('ca.pem', 'none');
    assert.deepEqual(await failureOf(asker), ['ca-file-refused', '']);
    write('ca.pem', readFileSync(CLUSTER_AUTHORITY));
    await ask(asker);
  });

  for (const certificate of ['other-host', 'expired']) {
    test(`refuse a certificate that is ${certificate}, whatever the environment says [§22, F8]`, async (t) => {
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
      t.after(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
      const endpoint = await startEndpoint(t, certificate);
      assert.equal((await failureOf(askerFor(endpoint)))[0], 'certificate-refused');
      assert.deepEqual(endpoint.questions, []);
      for (const socket of endpoint.sockets) await once(socket, 'close');
    });
  }
});

describe('the name', () => {
  /** Asks at this host, wherever that is: over a connection to the endpoint. */
  const askAt = ({ domain, uri }: FakeEndpoint, host: string) => {
    const connect: Connect = (_, limits) => connectDirectly(new URL(uri), limits);
    const options = issuerOf({ domain, audience: 'x' });
    return new IntrospectionEndpoint(options, `https://${host}/introspect`, BASIC, connect);
  };

  for (const host of ['other.test', '127.0.0.2', '[::2]']) {
    test(`of the address is that of the certificate: not ${host} [§22, RFC 9110 §4.3.4]`, async (t) => {
      const endpoint = await startEndpoint(t);
      const failure = await failureOf(askAt(endpoint, host));
      assert.deepEqual(failure, ['certificate-refused', 'ERR_TLS_CERT_ALTNAME_INVALID']);
      assert.deepEqual(endpoint.questions, []);
    });
  }

  // Node 22.23 refuses every IPv6 address.
  const isRefused = checkServerIdentity('::1', IPV6_CERTIFICATE) !== undefined;
  const missing = isRefused ? 'this Node accepts no IPv6 address in a certificate' : undefined;

  for (const [host, skip] of [
    ['provider.test', undefined],
    ['127.0.0.1', undefined],
    ['[::1]', missing],
  ] as const) {
    const name = `of the address is that of the certificate: ${host} [§22, RFC 9110 §4.3.4]`;
    test(withReason(name, skip), { skip: skip !== undefined }, async (t) => {
      const endpoint = await startEndpoint(t);
      let servername: unknown;
      endpoint.say = (question, response, request) => {
        servername = (request.socket as TLSSocket).servername;
        json({ active: false })(question, response, request);
      };
      await ask(askAt(endpoint, host));
      // RFC 6066 §3: an address is no name.
      assert.equal(servername, host === 'provider.test' ? host : false);
    });
  }
});

describe('a connection', () => {
  test('is kept for further introspection requests, also after a refusal, and longer than one may take [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    const asker = askerFor(endpoint);
    const controller = new AbortController();
    await asker.ask(TOKEN, controller.signal);
    // What ends an introspection request later ends no connection.
    controller.abort();
    await ask(asker);
    endpoint.say = json({ error: 'invalid_request' }, 400);
    assert.deepEqual(await failureOf(asker), ['status-refused', '400']);
    endpoint.say = json({ active: true });
    await ask(asker);
    assert.deepEqual(
      endpoint.questions.map(({ connection }) => connection),
      [1, 1, 1, 1],
    );
  });

  test('is a separate one for each of several introspection requests at the same time [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    const asker = askerFor(endpoint);
    await Promise.all([ask(asker), ask(asker), ask(asker)]);
    await Promise.all([ask(asker), ask(asker), ask(asker)]);
    assert.equal(endpoint.connections, 3);
  });

  test('that was kept and ends before a byte of the response: the introspection request is sent once more, on a new one [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    const asker = askerFor(endpoint);
    await Promise.all([ask(asker), ask(asker)]);
    endpoint.say = ({ connection }, response) => {
      if (connection < 3) response.socket?.destroy();
      else json({ active: true })({} as never, response, {} as never);
    };
    assert.deepEqual(await ask(asker), { active: true });
    assert.deepEqual(
      endpoint.questions.slice(2).map(({ connection }) => connection > 2),
      [false, true],
    );
  });

  test('that is new and ends before a byte of the response: the introspection request fails [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    endpoint.say = (_, response) => response.socket?.destroy();
    const asker = askerFor(endpoint);
    assert.equal((await failureOf(asker))[0], 'connection-failed');
    assert.equal(endpoint.questions.length, 1);
  });

  test('that was kept and ends twice: the introspection request fails after the second time [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    const asker = askerFor(endpoint);
    await ask(asker);
    endpoint.say = (_, response) => response.socket?.destroy();
    assert.equal((await failureOf(asker))[0], 'connection-failed');
    assert.equal(endpoint.questions.length, 3);
  });

  test('that was kept and ends after a byte of the response: the introspection request is not sent again [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    const asker = askerFor(endpoint);
    await ask(asker);
    endpoint.say = (_, response) => {
      response.socket?.write('HTTP/1.1 2', () => response.socket?.destroy());
    };
    assert.equal((await failureOf(asker))[0], 'connection-failed');
    assert.equal(endpoint.questions.length, 2);
  });

  test('on which the server says that it closes is not kept', async (t) => {
    const endpoint = await startEndpoint(t);
    endpoint.say = (_, response) => response.writeHead(200, { Connection: 'close' }).end('{"active":false}');
    const asker = askerFor(endpoint);
    await ask(asker);
    await ask(asker);
    assert.equal(endpoint.connections, 2);
  });

  test('does not outlive an introspection request that was given up [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    const controller = new AbortController();
    endpoint.say = () => controller.abort();
    await assert.rejects(askerFor(endpoint).ask(TOKEN, controller.signal));
    for (const socket of endpoint.sockets) await once(socket, 'close');
  });

  test('does not outlive an introspection request that was given up before TLS was spoken [§22]', async (t) => {
    const controller = new AbortController();
    const server = await startRawServer((socket) => socket.once('data', () => controller.abort()));
    t.after(() => server.stop());
    const domain = `localhost:${server.port}`;
    const asker = askerFor({ domain, issuer: `https://${domain}/`, uri: `https://${domain}/x` });
    await assert.rejects(asker.ask(TOKEN, controller.signal));
    await server.closed();
  });

  test('is closed where the server speaks no TLS [§22]', async (t) => {
    const server = await startRawServer((socket) => socket.resume().write('HTTP/1.1 400 x\r\n\r\n'));
    t.after(() => server.stop());
    const domain = `localhost:${server.port}`;
    const asker = askerFor({ domain, issuer: `https://${domain}/`, uri: `https://${domain}/x` });
    await assert.rejects(ask(asker), FetchError.is);
    await server.closed();
  });

  test('is opened for no longer than its introspection request lasts [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    const controller = new AbortController();

    const connect: Connect = (_, { signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new FetchError('timeout')));
        controller.abort();
        if (!signal.aborted) reject(new RangeError('it goes on'));
      });

    const options = issuerOf({ domain: endpoint.domain, audience: 'x' });
    const asked = new IntrospectionEndpoint(options, endpoint.uri, BASIC, connect).ask(
      TOKEN,
      controller.signal,
    );
    await assert.rejects(asked, (error) => !(error instanceof RangeError));
  });

  test('is not opened for an introspection request that was given up before [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    let opened = 0;

    const connect: Connect = (...given) => {
      opened += 1;
      return connectDirectly(...given);
    };

    const options = issuerOf({ domain: endpoint.domain, audience: 'x' });
    const asker = new IntrospectionEndpoint(options, endpoint.uri, BASIC, connect);
    await assert.rejects(asker.ask(TOKEN, AbortSignal.abort()));
    await ask(asker);
    assert.equal(opened, 1);
  });

  test('is kept for 30 seconds without an introspection request', async (t) => {
    const endpoint = await startEndpoint(t);
    // Otherwise the server says how long.
    endpoint.say = (_, response) => {
      response.writeHead(200, { Connection: 'keep-alive', 'Content-Length': 16 }).end('{"active":false}');
    };
    const { mock } = t.mock.method(Socket.prototype, 'setTimeout');
    await ask(askerFor(endpoint));
    await new Promise(setImmediate);
    const idle = mock.calls.find(({ arguments: [millis] }) => millis === 30_000);
    (idle?.this as Socket).emit('timeout');
    for (const socket of endpoint.sockets) await once(socket, 'close');
  });
});

describe('a response', () => {
  for (const [what, say, failure] of [
    [
      'a redirect',
      (_, response) => response.writeHead(307, { Location: '/elsewhere' }).end(),
      ['status-refused', '307'],
    ],
    ['a redirect that says active', json({ active: true }, 302), ['status-refused', '302']],
    ['another status of success', json({ active: true }, 201), ['status-refused', '201']],
    ['what a proxy has changed', json({ active: true }, 203), ['status-refused', '203']],
    ['401', json({ error: 'invalid_client' }, 401), ['status-refused', '401']],
    ['500', json({}, 500), ['status-refused', '500']],
    ['an array', json([]), ['not-a-json-object', '']],
    ['nothing', (_, response) => response.end(), ['not-a-json-object', '']],
    ['a signed response', (_, response) => response.end('eyJ0.e30.AAAA'), ['not-a-json-object', '']],
    ['half an object', (_, response) => response.end('{"active":tr'), ['not-a-json-object', '']],
    [
      'no UTF-8',
      (_, response) => response.end(Buffer.from('7b2261223a22ff227d', 'hex')),
      ['not-a-json-object', ''],
    ],
    [
      'a body framed in two ways, which RFC 9112 §6.3 takes for an attack,',
      (_, response) => {
        const head = 'HTTP/1.1 200 OK\r\nContent-Length: 15\r\nTransfer-Encoding: chunked\r\n\r\n';
        response.socket?.end(`${head}f\r\n{"active":true}\r\n0\r\n\r\n`);
      },
      ['connection-failed', 'HPE_INVALID_TRANSFER_ENCODING'],
    ],
    [
      'half a body',
      (_, response) =>
        void response
          .writeHead(200, { 'Content-Length': 99 })
          .write('{"active":true}', () => response.destroy()),
      ['connection-failed', 'ECONNRESET'],
    ],
    [
      'more than 64 KiB',
      (_, response) => response.end(`{"active":true,"x":"${'x'.repeat(65_536)}"}`),
      ['too-large', ''],
    ],
    [
      'more than 64 KiB of head',
      (_, response) => {
        const hint = `</${'x'.repeat(90)}>; rel=preload`;
        for (let index = 0; index < 800; index += 1) response.writeEarlyHints({ link: hint });
        response.end('{"active":true}');
      },
      ['too-large', ''],
    ],
    [
      'a switch of protocols',
      (_, response) =>
        void response.socket?.write('HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'),
      ['connection-failed', ''],
    ],
  ] as readonly (readonly [string, FakeEndpoint['say'], readonly string[]])[]) {
    test(`with ${what} is no answer [§22]`, async (t) => {
      const endpoint = await startEndpoint(t);
      const asker = askerFor(endpoint);
      await ask(asker);
      endpoint.say = say;
      const [kept] = endpoint.sockets;
      assert.deepEqual(await failureOf(asker), failure);
      const isUsable = failure.some((word) => ['status-refused', 'not-a-json-object'].includes(word));
      if (!isUsable && !kept?.destroyed) await once(kept!, 'close');
      endpoint.say = json({ active: true });
      assert.deepEqual(await ask(asker), { active: true });
      assert.equal(new Set(endpoint.questions.map(({ path }) => path)).size, 1);
    });
  }

  test('of 64 KiB with its head is one, and of a byte more none [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    const head = 'HTTP/1.1 200 OK\r\nContent-Length: 65000\r\n';
    const body = '{"active":true}'.padEnd(65_000);
    for (const [bytes, expected] of [
      [65_536, 'an answer'],
      [65_537, 'too-large'],
    ] as const) {
      const field = `X: ${'x'.repeat(bytes - `${head}X: \r\n\r\n${body}`.length)}\r\n`;
      endpoint.say = (_, response) => void response.socket?.write(`${head}${field}\r\n${body}`);
      const outcome = await ask(askerFor(endpoint)).then(
        () => 'an answer',
        (thrown) => FetchError.is(thrown) && thrown.reason,
      );
      assert.equal(outcome, expected);
    }
  });

  test('of nearly 64 KiB is one, again and again on one connection [§22]', async (t) => {
    const endpoint = await startEndpoint(t);
    endpoint.say = json({ active: true, x: 'x'.repeat(64_000) });
    const asker = askerFor(endpoint);
    for (let turn = 0; turn < 8; turn += 1) await ask(asker);
    assert.equal(endpoint.connections, 1);
  });

  for (const kind of ['ticket', 'key update'] as const) {
    test(`is bounded also where TLS brings no data, but a ${kind} after another [§22, J14]`, async (t) => {
      const server = await startRawServer((socket) => floodWithRecords(socket, identity, kind));
      t.after(() => server.stop());
      const domain = `localhost:${server.port}`;
      const asker = askerFor({ domain, issuer: `https://${domain}/`, uri: `https://${domain}/x` });
      assert.equal((await failureOf(asker))[0], 'too-large');
      await server.closed();
    });

    test(`is bounded on a connection that was kept, too, where TLS brings a ${kind} after another [§22, J14]`, async (t) => {
      const good = 'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"active":true}';
      const server = await startRawServer((socket) => floodWithRecords(socket, identity, kind, [good]));
      t.after(() => server.stop());
      const domain = `localhost:${server.port}`;
      const asker = askerFor({ domain, issuer: `https://${domain}/`, uri: `https://${domain}/x` });
      assert.deepEqual(await ask(asker), { active: true });
      assert.equal((await failureOf(asker))[0], 'too-large');
      await server.closed();
      assert.equal(server.connections, 1);
    });
  }
});

/* Bytes that never reach a route: malformed HTTP, invalid hosts and targets (docs/how-a-request-is-checked.md). */
import { strict as assert } from 'node:assert';
import { describe, test } from 'node:test';
import { exchange, openWire } from '../../support/client.ts';
import {
  GARBAGE,
  get,
  GOOD,
  HOST,
  LAST,
  openListener,
  ORIGIN,
  post,
  PREFLIGHT,
} from '../../support/listener.ts';
import { REFUSALS } from '../../../src/verify/base/refusal.ts';
import { responsesIn, assertRefused, MALFORMED, statusesIn } from '../../support/raw-responses.ts';
import { IMPOSSIBLE_HOSTS, POSSIBLE_HOSTS } from '../../support/spellings.ts';

const NOT_HTTP: Readonly<Record<string, string>> = {
  'a TLS greeting': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  'no request line': 'hello\r\n\r\n',
  'a version after 1.1': get(HOST, 'HTTP/1.2'),
  'an HTTP/2 preface': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'a lower-case version': get(HOST, 'http/1.1'),
  'an unknown method': `FETCH /healthz HTTP/1.1\r\n${HOST}\r\n`,
  'a space in the target': `GET /health z HTTP/1.1\r\n${HOST}\r\n`,
  'a null byte in the target': `GET /healthz\0 HTTP/1.1\r\n${HOST}\r\n`,
  'a byte over 127 in the target': `GET /\xe9 HTTP/1.1\r\n${HOST}\r\n`,
  'a null byte in a value': get(`${HOST}X: a\0b\r\n`),
  'a null byte in a name': get(`${HOST}X\0: a\r\n`),
  'a space before the colon': get('Host : api.test\r\n'),
  'a field without a colon': get(`${HOST}nothing\r\n`),
  'a folded line [RFC 9112 §5.2]': get(`${HOST}X: a\r\n b\r\n`),
  'a folded line with a tab': get(`${HOST}X: a\r\n\tb\r\n`),
  'a bare LF': get('Host: api.test\nX: a\r\n'),
  'a bare CR': get('Host: api.test\rX: a\r\n'),
  'two lengths [RFC 9112 §6.3]': post('Content-Length: 1\r\nContent-Length: 2\r\n', 'ab'),
  'two equal lengths': post('Content-Length: 1\r\nContent-Length: 1\r\n', 'a'),
  'a list of lengths': post('Content-Length: 1, 1\r\n', 'a'),
  'a length with chunking [RFC 9112 §6.1]': post(
    'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n',
    '0\r\n\r\n',
  ),
  'chunking with a length': post('Transfer-Encoding: chunked\r\nContent-Length: 5\r\n', '0\r\n\r\n'),
  'chunking that is not the last coding': post('Transfer-Encoding: chunked, gzip\r\n', '0\r\n\r\n'),
  'a negative length': post('Content-Length: -1\r\n'),
  'a signed length': post('Content-Length: +1\r\n', 'a'),
  'a length that is not decimal': post('Content-Length: 0x1\r\n', 'a'),
  'an empty length': post('Content-Length:\r\n'),
};

const BAD_HOST = 'the request needs exactly one Host header field with a host and an optional port';

describe('the listener', { timeout: 120_000 }, () => {
  test('refuses bytes that are not well-formed HTTP [RFC 9112 §2.2], without effect on other clients', async (t) => {
    const listener = await openListener(t);
    const neighbour = await openWire(listener.port);
    neighbour.send(GOOD);
    await neighbour.until((text) => text.endsWith('}'));
    for (const [what, bytes] of Object.entries(NOT_HTTP)) {
      await t.test(`refuses ${what}`, async () => {
        const received = await exchange(listener.port, Buffer.from(bytes, 'latin1'));
        assertRefused(received, 400, 'invalid_request', MALFORMED);
        // RFC 9110 §6.6.1, by the clock of the service.
        assert.equal(responsesIn(received)[0]?.fields.get('date'), 'Tue, 01 Jan 2030 00:00:00 GMT');
        assert.deepEqual(listener.logs.at(-1)?.reason, 'malformed-http');
      });
    }
    neighbour.send(LAST);
    assert.deepEqual(statusesIn(await neighbour.untilClosed()), [200, 200]);
    await listener.gone();
  });

  test('refuses versions of HTTP other than 1.0 and 1.1 [RFC 9112 §2.3]', async (t) => {
    const listener = await openListener(t);
    const versions = ['0.9', '1.2', '1.9', '2.0', '2.1', '3.0'].map((version) =>
      get(HOST, `HTTP/${version}`),
    );
    const bare = 'GET /healthz\r\n\r\n';
    const withBody = `POST /healthz HTTP/2.0\r\n${HOST}Content-Length: 1\r\n\r\na`;
    for (const bytes of [...versions, bare, withBody]) {
      assertRefused(await exchange(listener.port, bytes), 400, 'invalid_request', MALFORMED);
      assert.equal(listener.logs.at(-1)?.reason, 'malformed-http', bytes);
    }
    await listener.gone();
  });

  const CHUNKED = 'Transfer-Encoding: chunked\r\n';
  for (const [what, bytes] of [
    ['another coding before chunking', post('Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n')],
    ['a coding that begins like chunking', post('Transfer-Encoding: chunkedx, chunked\r\n', '0\r\n\r\n')],
    ['a coding of one dash', post('Transfer-Encoding: -\r\n')],
    ['a coding that ends like a version with chunking', post('Transfer-Encoding: 1.1chunked\r\n')],
    ['an empty Transfer-Encoding beside a length', post('Transfer-Encoding:\r\nContent-Length: 1\r\n', 'a')],
    [
      'chunking in HTTP/1.0, even with keep-alive',
      post(`Connection: keep-alive\r\n${CHUNKED}`, '0\r\n\r\n').replace('1.1', '1.0'),
    ],
  ] as const) {
    test(`refuses ${what}, and what follows it [RFC 9112 §6.1] [G8]`, async (t) => {
      const listener = await openListener(t);
      const received = await exchange(listener.port, bytes + GOOD);
      assertRefused(received, 400, 'invalid_request', MALFORMED);
      assert.equal(listener.logs.at(-1)?.reason, 'malformed-http');
      await listener.gone();
    });
  }

  for (const [what, environment, more] of [
    ['', {}, []],
    [' and the cross-origin field Vary', { CORS_ALLOWED_ORIGINS: ORIGIN }, ['Vary: Origin']],
  ] as const) {
    test(`responds to malformed HTTP with status line, date, fixed fields${what}, and closes [RFC 9112 §4]`, async (t) => {
      const { port } = await openListener(t, { environment });
      const [head = '', text] = (await exchange(port, GARBAGE)).split('\r\n\r\n');
      assert.deepEqual(head.split('\r\n'), [
        'HTTP/1.1 400 Bad Request',
        'Date: Tue, 01 Jan 2030 00:00:00 GMT',
        'Content-Type: application/json; charset=utf-8',
        'Cache-Control: no-store',
        'X-Content-Type-Options: nosniff',
        'Content-Length: 75',
        `WWW-Authenticate: Bearer realm="api", error="invalid_request", error_description="${MALFORMED}"`,
        ...more,
        'Connection: close',
      ]);
      assert.equal(text, `{"error":"invalid_request","message":"${MALFORMED}"}`);
    });
  }

  test('refuses a request whose Host is missing, repeated or impossible [RFC 9112 §3.2, G7]', async (t) => {
    const listener = await openListener(t);
    const cases: Record<string, string> = {
      'no Host': get(''),
      'two Hosts in HTTP/1.0': get(HOST + HOST, 'HTTP/1.0'),
      'two Hosts': get(`${HOST}Host: other.test\r\n`),
      'two equal Hosts': get(HOST + HOST),
      'two Hosts in other cases': get(`${HOST}HOST: api.test\r\n`),
      'a valid and an empty Host': get(`${HOST}Host:\r\n`),
      'X-Forwarded-Host alone': get('X-Forwarded-Host: api.test\r\n'),
      'no Host at a path that does not exist': 'GET /nowhere HTTP/1.1\r\n\r\n',
      'no Host with another method': 'PUT /healthz HTTP/1.1\r\n\r\n',
      'no Host on a preflight': `OPTIONS /healthz HTTP/1.1\r\n${PREFLIGHT}Connection: close\r\n\r\n`,
      'two Hosts on a preflight': `OPTIONS /healthz HTTP/1.1\r\n${HOST}${HOST}${PREFLIGHT}Connection: close\r\n\r\n`,
    };
    for (const host of IMPOSSIBLE_HOSTS) {
      cases[`Host ${JSON.stringify(host)}`] = get(`Host: ${host}\r\nConnection: close\r\n`);
    }
    for (const [what, bytes] of Object.entries(cases)) {
      await t.test(`refuses ${what}`, async () => {
        assertRefused(
          await exchange(listener.port, Buffer.from(bytes, 'latin1')),
          400,
          'invalid_request',
          BAD_HOST,
        );
        assert.deepEqual(listener.logs.at(-1)?.reason, 'host-refused');
      });
    }
    await listener.gone();
  });

  test('accepts every valid form of Host [RFC 3986 §3.2.2]', async (t) => {
    const { port } = await openListener(t);
    for (const host of POSSIBLE_HOSTS) {
      assert.deepEqual(
        statusesIn(await exchange(port, get(`hOST: ${host}\r\nConnection: close\r\n`))),
        [200],
        host,
      );
    }
  });

  test('serves a request of HTTP/1.0 without Host, as some load balancers send probes [RFC 9112 §3.2]', async (t) => {
    const { port } = await openListener(t);
    for (const fields of ['', 'X-Forwarded-Host: a b\r\n']) {
      const [response] = responsesIn(await exchange(port, `${get(fields, 'HTTP/1.0')}`));
      assert.deepEqual([response?.status, response?.text], [200, '{"status":"ok"}'], fields);
    }
  });

  test('refuses a target that is not a path, and closes', async (t) => {
    const listener = await openListener(t);
    for (const line of [
      'GET http://api.test/healthz',
      'OPTIONS *',
      'CONNECT api.test:443',
      'CONNECT api.test:443',
    ]) {
      const received = await exchange(listener.port, `${line} HTTP/1.1\r\n${HOST}\r\n`);
      assertRefused(received, 400, 'invalid_request', REFUSALS.invalid_request['target-refused']);
      assert.equal(listener.logs.at(-1)?.reason, 'target-refused');
    }
    await listener.gone();
  });
});

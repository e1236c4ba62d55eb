/* A body as bytes: what is accepted, and what is refused as for JSON (docs/routes-reference.md). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { needs, open } from '../../../src/gate/rules/access.ts';
import { scope } from '../../../src/gate/rules/guards.ts';
import { bytes } from '../../../src/service/routes/inputs.ts';
import { get, post, put } from '../../../src/service/routes/route.ts';
import { tokenWith } from '../../support/caller.ts';
import { exchange, openWire } from '../../support/client.ts';
import { startRoutes, type RunningRoutes } from '../../support/routes.ts';
import { schemaOf } from '../../support/schemas.ts';
import { parseHead } from '../fetch/fixture.ts';

const taken: Uint8Array[] = [];

function take({ body }: { readonly body: Uint8Array }): object {
  taken.push(body);
  return {};
}

let service: RunningRoutes;

before(async () => {
  service = await startRoutes({
    routes: [
      post('/any', open, bytes(), take),
      put('/limited', open, bytes({ limitBytes: 10 }), take),
      post('/image', open, bytes({ types: ['image/png', 'image/webp'] }), take),
      post('/mine', needs(scope('write')), bytes(), take),
      post('/echo', open, bytes(), ({ body }) => new Response(body as never)),
      get('/after', open, () => ({ after: true })),
    ],
    environment: { BODY_LIMIT_BYTES: '100' },
  });
});

after(() => service.stop());

const ask = async (line: string, fields: readonly string[], body = '') =>
  parseHead(
    await exchange(
      service.port,
      Buffer.from(
        `${line} HTTP/1.1\r\n${['Host: a', 'Connection: close', ...fields].join('\r\n')}\r\n\r\n${body}`,
        'latin1',
      ),
    ),
  );

const CHUNKED = 'Transfer-Encoding: chunked';

describe('a body as bytes', { timeout: 30_000 }, () => {
  for (const [what, fields, body, expected] of [
    [
      'of a media type',
      ['Content-Type: application/octet-stream', 'Content-Length: 3'],
      '\x00\xff\n',
      '\x00\xff\n',
    ],
    ['of no media type', ['Content-Length: 1'], 'a', 'a'],
    ['in chunks', [CHUNKED], '2\r\nab\r\n1\r\nc\r\n0\r\n\r\n', 'abc'],
    ['in chunks, without a byte', [CHUNKED], '0\r\n\r\n', ''],
    ['in another charset', ['Content-Type: text/plain; charset=latin1', 'Content-Length: 1'], '\xe9', '\xe9'],
    ['that is no JSON, declared as JSON', ['Content-Type: application/json', 'Content-Length: 1'], '{', '{'],
    ['of two media types', ['Content-Type: a/b', 'Content-Type: c/d', 'Content-Length: 1'], 'x', 'x'],
  ] as const) {
    test(`is accepted ${what}, as it came`, async () => {
      taken.length = 0;
      const { status } = await ask('POST /any', fields, body);
      assert.equal(status, 200);
      assert.deepEqual(taken, [Uint8Array.from(Buffer.from(expected, 'latin1'))]);
    });
  }

  test('is a Uint8Array with memory of its own', async () => {
    taken.length = 0;
    await ask('POST /any', ['Content-Length: 3'], 'abc');
    const [body] = taken;
    assert.equal(Object.getPrototypeOf(body), Uint8Array.prototype);
    assert.deepEqual([body!.buffer.byteLength, body!.byteOffset], [3, 0]);
  });

  test('is read only once access is granted, and then 100 Continue is sent [RFC 9110 §10.1.1]', async () => {
    const fields = ['Expect: 100-continue', 'Content-Length: 1'];
    assert.equal((await ask('POST /mine', fields)).status, 401);
    const wire = await openWire(service.port);
    const head = ['POST /mine HTTP/1.1', 'Host: a', `Authorization: Bearer ${tokenWith({ scope: 'write' })}`];
    wire.send(`${[...head, ...fields, 'Connection: close'].join('\r\n')}\r\n\r\n`);
    assert.equal(await wire.until((text) => text.endsWith('\r\n\r\n')), 'HTTP/1.1 100 Continue\r\n\r\n');
    wire.send('x');
    assert.match(await wire.untilClosed(), /HTTP\/1\.1 200 OK/);
  });

  for (const [line, fields, body, status, reason] of [
    ['POST /any', [], '', 400, 'body-missing'],
    ['POST /any', ['Content-Length: 0'], '', 400, 'body-missing'],
    ['POST /any', ['Content-Encoding: gzip', 'Content-Length: 1'], 'a', 415, 'coding-refused'],
    ['POST /any', ['Content-Length: 101'], '', 413, 'body-too-large'],
    ['PUT /limited', ['Content-Length: 11'], '', 413, 'body-too-large'],
    ['PUT /limited', [CHUNKED], 'b\r\n01234567890\r\n0\r\n\r\n', 413, 'body-too-large'],
    ['POST /image', ['Content-Length: 1'], 'a', 415, 'media-type-refused'],
    ['POST /image', ['Content-Type: image/gif', 'Content-Length: 1'], 'a', 415, 'media-type-refused'],
  ] as const) {
    test(`is refused as ${reason}: ${line} with ${fields.join(', ') || 'nothing'}`, async () => {
      taken.length = 0;
      const response = await ask(line, fields, body);
      assert.deepEqual([response.status, service.logs.at(-1)?.reason, taken], [status, reason, []]);
      const accept = reason === 'media-type-refused' ? ['image/png, image/webp'] : undefined;
      assert.deepEqual(response.fields.accept, accept);
    });
  }

  test('is accepted in the media types that the route names, with parameters', async () => {
    const fields = ['Content-Type: image/webp; q=1', 'Content-Length: 1'];
    assert.equal((await ask('POST /image', fields, 'a')).status, 200);
  });

  test('keeps the connection, and may be sent back', async () => {
    const next = 'GET /after HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
    const text = await exchange(
      service.port,
      `POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc${next}`,
    );
    assert.match(text, /\r\n\r\nabcHTTP\/1\.1 200 OK[^]*\{"after":true\}$/);
  });
});

test('bytes throws for a schema, for unknown options or what is none, and for a wrong limit or type [§27]', () => {
  const schema = new (class {
    '~standard' = schemaOf((value) => ({ value }))['~standard'];
  })();
  const other = /^TypeError: bytes: .*(?:is no option; correct or remove it|must be a plain object)/;
  const inherits = new (class {
    get '~standard'() {
      return schema['~standard'];
    }
  })();
  for (const none of [schema, inherits, new Map(), 10, null, [], () => ({})]) {
    assert.throws(() => bytes(none as never), other);
  }
  assert.throws(() => bytes({ limit: 1 } as never), other);
  assert.throws(() => bytes(schemaOf((value) => ({ value })) as never), other);
  assert.throws(() => bytes({ limitBytes: 0 }), /^TypeError: bytes: limitBytes: must be/);
  assert.throws(() => bytes({ types: [] as never }), /^TypeError: bytes: types: must be a list/);
  assert.deepEqual([bytes().types, bytes().limitBytes, bytes().input], [[], undefined, 'body']);
});

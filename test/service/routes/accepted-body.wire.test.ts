/* A body that a route accepts: what is refused, in which order, and what happens to the connection
   (docs/routes-reference.md). */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { refuse, type REFUSALS } from '../../../src/verify/base/refusal.ts';
import { needs, open } from '../../../src/gate/rules/access.ts';
import { scope } from '../../../src/gate/rules/guards.ts';
import { get, patch, post } from '../../../src/service/routes/route.ts';
import { json, query } from '../../../src/service/routes/inputs.ts';
import { tokenWith } from '../../support/caller.ts';
import { exchange, openWire } from '../../support/client.ts';
import { responsesIn, statusesIn, type RawResponse } from '../../support/raw-responses.ts';
import { ORDER, schemaOf } from '../../support/schemas.ts';
import { startRoutes, type RunningRoutes } from '../../support/routes.ts';

const LIMIT_BYTES = 1_000;
/** The bodies that the handlers have received. */
const taken: unknown[] = [];

function take({ body }: { readonly body: unknown }): object {
  taken.push(body);
  return { body };
}

const PAGE = schemaOf((value) =>
  Object(value).page === undefined ? { value } : { issues: [{ message: 'is unknown', path: ['page'] }] },
);

const limited = { limitBytes: LIMIT_BYTES };

let service: RunningRoutes;
const requests: IncomingMessage[] = [];

before(async () => {
  service = await startRoutes({
    routes: [
      post('/guarded', needs(scope('write')), query(PAGE), json(ORDER, limited), take),
      post('/any', open, json(undefined, limited), take),
      post('/by-setting', open, json(), take),
      post('/judged', open, query(PAGE), json(ORDER), take),
      patch('/merge', open, json(undefined, { types: ['application/merge-patch+json', 'text/x.y'] }), take),
      get('/none', open, () => ({})),
    ],
    environment: { BODY_LIMIT_BYTES: '50' },
  });
  for (const event of ['request', 'checkContinue']) {
    service.server.on(event, (request: IncomingMessage) => requests.push(request));
  }
});

after(() => service.stop());

interface Sent {
  readonly method?: string;
  readonly path?: string;
  /** Header fields as lines, without Host. */
  readonly fields?: readonly string[];
  readonly body?: string | Buffer;
}

const JSON_TYPE = 'Content-Type: application/json';

function bytesOf({ method = 'POST', path = '/any', fields = [JSON_TYPE], body = '' }: Sent): Buffer {
  const length = body.length === 0 ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  const isFramed = fields.some((field) => /^(content-length|transfer-encoding):/i.test(field));
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: a', ...fields, ...(isFramed ? [] : length)];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), Buffer.from(body)]);
}

/** The only response on a new connection. */
async function responseTo({ fields = [JSON_TYPE], ...sent }: Sent): Promise<RawResponse> {
  const bytes = bytesOf({ ...sent, fields: [...fields, 'Connection: close'] });
  const responses = responsesIn(await exchange(service.port, bytes));
  assert.equal(responses.length, 1);
  return responses[0]!;
}

const chunked = (...chunks: readonly (string | Buffer)[]): Buffer =>
  Buffer.concat(
    [...chunks, ''].flatMap((chunk) => [
      Buffer.from(`${Buffer.byteLength(chunk).toString(16)}\r\n`),
      Buffer.from(chunk),
      Buffer.from('\r\n'),
    ]),
  );

const FIVE = 'Content-Length: 5';
const CHUNKED = [JSON_TYPE, 'Transfer-Encoding: chunked'];

const STATUSES = {
  invalid_body: 400,
  invalid_query: 400,
  content_too_large: 413,
  unsupported_media_type: 415,
  unprocessable_content: 422,
} as const;

type ContentKind = keyof typeof STATUSES;

type ContentReason = { [Kind in ContentKind]: keyof (typeof REFUSALS)[Kind] }[ContentKind];

/** Asserts that the request is refused for this reason, without a challenge, and reaches no handler. */
async function assertRefused(sent: Sent, reason: ContentReason): Promise<RawResponse> {
  taken.length = 0;
  const response = await responseTo(sent);
  const error = refuse(reason).refusal.kind as ContentKind;
  assert.deepEqual(
    [response.status, JSON.parse(response.text).error, service.logs.at(-1)?.reason, taken],
    [STATUSES[error], error, reason, []],
  );
  assert.equal(service.logs.at(-1)?.status, response.status);
  assert.equal(response.fields.get('www-authenticate'), undefined);
  return response;
}

describe('a route that accepts a body', { timeout: 30_000 }, () => {
  const VALUES = [
    'null',
    'true',
    '"x"',
    '[]',
    '{}',
    '-0.5e1',
    ' \t\r\n{"a":[{"b":null}]}\n',
    '"\\ud800"',
    '1e999',
  ];
  for (const text of VALUES) {
    test(`accepts the JSON value ${JSON.stringify(text)}, with a length and in chunks [RFC 8259 §2]`, async () => {
      taken.length = 0;
      const bytes = Buffer.from(text);
      const one = chunked(...Array.from(bytes, (byte) => Buffer.of(byte)));
      for (const [fields, body] of [
        [[JSON_TYPE], text],
        [CHUNKED, chunked(text)],
        [CHUNKED, one],
      ] as const) {
        const response = await responseTo({ fields, body });
        assert.deepEqual([response.status, taken.pop()], [200, JSON.parse(text)]);
      }
    });
  }

  test('accepts chunks whose coding is in another case [RFC 9112 §7]', async () => {
    const fields = [JSON_TYPE, 'Transfer-Encoding: CHUNKED'];
    assert.equal((await responseTo({ fields, body: chunked('1') })).status, 200);
  });

  test('uses the last of repeated members, even if an earlier one would be refused [RFC 8259 §4]', async () => {
    taken.length = 0;
    await responseTo({ body: '{"a":1,"b":{"__proto__":1},"b":2,"a":3}' });
    assert.deepEqual(taken, [{ a: 3, b: 2 }]);
  });

  test('accepts members that only resemble __proto__ or constructor.prototype, and these names as values', async () => {
    const bodies = [
      '{"constructor":1}',
      '{"constructor":null}',
      '{"constructor":{"a":1}}',
      '{"prototype":{}}',
      '["__proto__"]',
      '{"constructor":"prototype"}',
      '{"a":"__proto__"}',
      '{"__proto":1}',
    ];
    for (const body of bodies) assert.equal((await responseTo({ body })).status, 200, body);
  });

  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
  const nestedObjects = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;

  test('accepts 64 levels of arrays and objects', async () => {
    for (const body of [nested(64), nestedObjects(64), `[1,${nestedObjects(63)}]`]) {
      assert.equal((await responseTo({ body })).status, 200, body);
    }
  });

  test('accepts as many bytes as the limit, and no more, with a length and in chunks [RFC 9110 §15.5.14]', async () => {
    const filled = (length: number) => `"${'x'.repeat(length - 2)}"`;
    for (const [path, limit] of [
      ['/any', LIMIT_BYTES],
      ['/by-setting', 50],
    ] as const) {
      const most = filled(limit);
      const tooLong = filled(limit + 1);
      for (const [fields, body] of [
        [[JSON_TYPE], most],
        [CHUNKED, chunked(most)],
        [CHUNKED, chunked(most.slice(0, 20), most.slice(20))],
      ] as const) {
        assert.equal((await responseTo({ path, fields, body })).status, 200);
      }
      await assertRefused({ path, body: tooLong }, 'body-too-large');
      await assertRefused({ path, fields: CHUNKED, body: chunked(tooLong) }, 'body-too-large');
      const two = chunked(tooLong.slice(0, 20), tooLong.slice(20));
      await assertRefused({ path, fields: CHUNKED, body: two }, 'body-too-large');
    }
  });

  test('counts bytes, not characters', async () => {
    const body = JSON.stringify('é'.repeat((LIMIT_BYTES - 2) / 2));
    assert.equal((await responseTo({ body })).status, 200);
    await assertRefused({ body: `${body} ` }, 'body-too-large');
  });

  const TYPES_TAKEN = [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'application/json ;\tcharset="utf-8"',
    'application/json; charset=Utf-8; charset="UTF-8"',
    'application/json; charset= utf-8 ; xcharset=latin1; x-charset=latin1',
    'application/json; charset=utf8',
    'application/json; charset="UTF8"',
    'application/json; profile="utf8;charset=latin1"',
    'application/json; version=1',
    'application/json;',
    'application/json; profile="a;charset=latin1"',
    'application/json; profile="a; charset=latin1; b"; charset="utf-8"; c="; charset=x"',
    'application/json; profile="a\\";charset=latin1"',
    'application/json; profile=";charset=";charset=utf-8',
    'application/json; profile="utf-8;charset=latin1"',
    'application/json; profile="";charset=utf-8',
  ];
  for (const type of TYPES_TAKEN) {
    test(`accepts the type ${type} [RFC 9110 §8.3.1, §5.6.4, §5.6.6]`, async () => {
      assert.equal((await responseTo({ fields: [`Content-Type: ${type}`], body: '1' })).status, 200);
    });
  }

  const TYPES_REFUSED = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/merge-patch+json',
    'application/problem+json',
    'application/jsonx',
    'xapplication/json',
    'application/json, text/plain',
    'application / json',
    'json',
    '\x2a/\x2a',
    '',
    ';',
  ];
  for (const type of TYPES_REFUSED) {
    test(`refuses the type "${type}", and says what it accepts [RFC 9110 §15.5.16]`, async () => {
      const fields = [`Content-Type: ${type}`];
      const response = await assertRefused({ fields, body: '1' }, 'media-type-refused');
      assert.equal(response.fields.get('accept'), 'application/json');
    });
  }

  test('refuses a body without a type, or with two [RFC 9110 §8.3]', async () => {
    await assertRefused({ fields: [], body: '1' }, 'media-type-refused');
    await assertRefused({ fields: [JSON_TYPE, JSON_TYPE], body: '1' }, 'media-type-refused');
    const withText = [JSON_TYPE, 'content-type: text/plain'];
    await assertRefused({ fields: withText, body: '1' }, 'media-type-refused');
  });

  test('accepts only the types that the route names', async () => {
    const merge = { method: 'PATCH', path: '/merge', body: '1' };
    for (const type of ['application/merge-patch+json; charset=utf-8', 'TEXT/x.y']) {
      assert.equal((await responseTo({ ...merge, fields: [`Content-Type: ${type}`] })).status, 200);
    }
    const response = await assertRefused(merge, 'media-type-refused');
    assert.equal(response.fields.get('accept'), 'application/merge-patch+json, text/x.y');
  });

  for (const charset of [
    'iso-8859-1',
    'utf-16',
    'utf88',
    'utf-8x',
    '"latin1"',
    "'utf-8'",
    '',
    '""',
    'utf-8 ;charset=latin1',
    'latin1; profile="a"',
    'utf-8; profile="a;b"; charset=latin1',
    '"utf-8"; profile="utf-8"; charset="latin1"',
    '"utf-8"x',
    '"x"utf-8',
    '"utf-8',
    'utf-8"',
    '"utf-8;"',
  ]) {
    test(`refuses the charset ${charset} [RFC 8259 §8.1, RFC 9110 §5.6.6]`, async () => {
      for (const parameter of [
        'charset',
        'CHARSET',
        'a=b;charset',
        'charset ',
        'a="b;charset=utf-8";charset',
        'a="\\\\";charset',
      ]) {
        const fields = [`Content-Type: application/json; ${parameter}=${charset}`];
        await assertRefused({ fields, body: '1' }, 'charset-refused');
      }
    });
  }

  for (const codings of [
    ['gzip'],
    ['br'],
    ['identity, gzip'],
    ['identity', 'gzip'],
    ['x'],
    ['identity identity'],
    ['*'],
  ]) {
    test(`refuses the content coding ${codings.join(' and ')}, and says which it accepts [RFC 9110 §12.5.3]`, async () => {
      const fields = [JSON_TYPE, ...codings.map((coding) => `Content-Encoding: ${coding}`)];
      const response = await assertRefused({ fields, body: '1' }, 'coding-refused');
      assert.equal(response.fields.get('accept-encoding'), 'identity');
    });
  }

  test('accepts the coding identity, or none [RFC 9110 §8.4]', async () => {
    for (const coding of ['identity', 'IDENTITY', '']) {
      const fields = [JSON_TYPE, `Content-Encoding: ${coding}`];
      assert.equal((await responseTo({ fields, body: '1' })).status, 200, coding);
    }
  });

  test('refuses a request without a body [RFC 9112 §6.3]', async () => {
    for (const fields of [[JSON_TYPE], [JSON_TYPE, 'Content-Length: 0'], [JSON_TYPE, 'Content-Length: 00']]) {
      await assertRefused({ fields }, 'body-missing');
    }
  });

  const MALFORMED = {
    'nothing in chunks': '',
    'broken JSON': '{"a":',
    'JSON with data behind it': '{} {}',
    'a comment': '{} // x',
    'an unquoted member': '{a:1}',
    'a trailing comma': '[1,]',
    NaN: 'NaN',
    'a byte-order mark': '\ufeff{}',
    'a byte that is no UTF-8': Buffer.from('"\xff"', 'latin1'),
    'overlong UTF-8': Buffer.from('"\xc0\xaf"', 'latin1'),
    'a lone surrogate in UTF-8': Buffer.from('"\xed\xa0\x80"', 'latin1'),
    'UTF-8 that is cut off': Buffer.from('"\xc3', 'latin1'),
    'UTF-16': Buffer.from('{}', 'utf16le'),
    'a control character in a string': '"\n"',
  };
  for (const [what, body] of Object.entries(MALFORMED)) {
    test(`refuses ${what} [RFC 8259 §8.1]`, async () => {
      await assertRefused(
        { fields: CHUNKED, body: body.length === 0 ? '0\r\n\r\n' : chunked(body) },
        'body-malformed',
      );
      if (body.length > 0) await assertRefused({ body }, 'body-malformed');
    });
  }

  test('refuses 65 levels of arrays and objects, and as many as fit into the limit', async () => {
    for (const body of [nested(65), nestedObjects(65), `[${nestedObjects(64)},1]`, nested(LIMIT_BYTES / 2)]) {
      await assertRefused({ body }, 'body-too-deep');
    }
  });

  const MEMBERS = [
    '{"__proto__":1}',
    '{"__proto__":null}',
    '{"\\u005f_proto__":{}}',
    '[[{"a":{"__proto__":{}}}]]',
    '[{},{"__proto__":1},{}]',
    '{"constructor":{"prototype":1}}',
    '{"a":[{"constructor":{"prototype":null,"b":1}}]}',
    '{"__proto__":{"constructor":{"prototype":1}}}',
    // As deep as a body may be.
    `${'['.repeat(63)}{"__proto__":1}${']'.repeat(63)}`,
  ];
  for (const body of MEMBERS) {
    test(`refuses the body ${body}, since a member could change a prototype`, async () =>
      void (await assertRefused({ body }, 'body-member-refused')));
  }

  test('refuses what the schema refuses, says where and why, and does not change the schema’s objects', async () => {
    const guarded = {
      path: '/guarded',
      fields: [JSON_TYPE, `Authorization: Bearer ${tokenWith({ scope: 'write' })}`],
    };
    const response = await assertRefused({ ...guarded, body: '{"item":5,"secret":"s"}' }, 'body-refused');
    assert.equal(
      response.text,
      '{"error":"unprocessable_content","message":"The body does not match its schema","issues":[{"path":["item"],"message":"must be text"}]}',
    );
    taken.length = 0;
    await responseTo({ ...guarded, body: '{"item":"a","more":1}' });
    assert.deepEqual(taken, [{ item: 'a' }]);
  });
});

/** A request with any of the faults, which can all be combined. */
interface Request {
  readonly token: string | undefined;
  readonly path: string;
  readonly coding: string;
  readonly type: string;
  readonly charset: string;
  readonly members: readonly string[];
  readonly tail: string;
  readonly isMissing: boolean;
}

type Reason = ContentReason | 'no-credentials' | 'scope-missing' | 'not_found';

type Fault = (request: Request) => Partial<Request>;

const adding =
  (member: string): Fault =>
  ({ members }) => ({ members: [...members, member] });

describe('the order of the checks', { timeout: 30_000 }, () => {
  /** In the order in which they are reported. */
  const FAULTS: readonly (readonly [Reason, Fault])[] = [
    ['not_found', ({ path }) => ({ path: path.replace('/guarded', '/nowhere') })],
    ['no-credentials', () => ({ token: undefined })],
    ['scope-missing', ({ token }) => ({ token: token && tokenWith({ scope: 'read' }) })],
    ['query-refused', ({ path }) => ({ path: `${path}?page=1` })],
    ['body-missing', () => ({ isMissing: true })],
    ['coding-refused', () => ({ coding: 'gzip' })],
    ['media-type-refused', () => ({ type: 'text/plain' })],
    ['charset-refused', () => ({ charset: 'latin1' })],
    ['body-too-large', ({ tail }) => ({ tail: tail + ' '.repeat(LIMIT_BYTES) })],
    ['body-malformed', ({ tail }) => ({ tail: `${tail}}` })],
    ['body-too-deep', adding(`"deep":${'['.repeat(64)}${']'.repeat(64)}`)],
    ['body-member-refused', adding('"__proto__":1')],
    ['body-refused', adding('"item":5')],
  ];

  function sentWith(...faults: readonly Fault[]): Sent {
    const good: Request = {
      token: tokenWith({ scope: 'write' }),
      path: '/guarded',
      coding: 'identity',
      type: 'application/json',
      charset: 'utf-8',
      members: ['"item":"a"'],
      tail: '',
      isMissing: false,
    };
    const request = faults.reduce((before, fault) => ({ ...before, ...fault(before) }), good);
    const { token, path, coding, type, charset, members, tail, isMissing } = request;
    const bearer = token === undefined ? [] : [`Authorization: Bearer ${token}`];
    const fields = [`Content-Type: ${type};charset=${charset}`, `Content-Encoding: ${coding}`, ...bearer];
    return { path, fields, body: isMissing ? '' : `{${members.join(',')}}${tail}` };
  }

  test('accepts the request without any fault', async () => {
    assert.equal((await responseTo(sentWith())).status, 200);
  });

  for (const [index, [reason, fault]] of FAULTS.entries()) {
    test(`reports ${reason} before every later fault`, async () => {
      for (const later of [undefined, ...FAULTS.slice(index + 1)]) {
        const response = await responseTo(sentWith(...(later === undefined ? [fault] : [later[1], fault])));
        assert.equal(service.logs.at(-1)?.reason, reason, later?.[0]);
        assert.equal(service.logs.at(-1)?.status, response.status);
      }
    });
  }
});

describe('the connection of a route that accepts a body', { timeout: 30_000 }, () => {
  const next = bytesOf({ method: 'GET', path: '/none', fields: ['Connection: close'] });
  const fill = (length: number) => ' '.repeat(length);

  test('continues after a body that was read to its end, accepted or not', async () => {
    const chunks: Sent[] = ['1', '{', '{"__proto__":1}', nestedDeep()].map((text) => ({
      fields: CHUNKED,
      body: chunked(text),
    }));
    const cases: Sent[] = [
      { body: '1' },
      { body: '{' },
      { body: '{"__proto__":1}' },
      { body: nestedDeep() },
      ...chunks,
      { fields: CHUNKED, body: '0\r\n\r\n' },
    ];
    for (const sent of cases) {
      const wire = await openWire(service.port);
      wire.send(bytesOf(sent));
      const first = await wire.until((text) => text.endsWith('}'));
      assert.equal(responsesIn(first)[0]?.fields.get('connection'), 'keep-alive');
      wire.send(next);
      assert.deepEqual(statusesIn(await wire.untilClosed()), [statusesIn(first)[0], 200]);
    }
  });

  test('ends after a body that was refused unread, even if it has arrived [RFC 9112 §9.6]', async () => {
    const cases: Sent[] = [
      { fields: ['Content-Type: text/plain'], body: '1' },
      { fields: [JSON_TYPE, 'Content-Encoding: gzip'], body: '1' },
      { body: fill(LIMIT_BYTES + 1) },
      { path: '/guarded', body: '1' },
      { path: '/nowhere', body: '1' },
      { path: '/none', body: '1' },
      {
        fields: CHUNKED,
        body: Buffer.from(`${(LIMIT_BYTES + 1).toString(16)}\r\n${fill(LIMIT_BYTES + 1)}\r\n`),
      },
    ];
    for (const sent of cases) {
      const [response, ...others] = responsesIn(
        await exchange(service.port, Buffer.concat([bytesOf(sent), next])),
      );
      assert.deepEqual([response?.fields.get('connection'), others], ['close', []]);
    }
  });

  test('continues after a request that should have had a body', async () => {
    assert.deepEqual(
      statusesIn(await exchange(service.port, Buffer.concat([bytesOf({}), next]))),
      [400, 200],
    );
  });

  test('delivers the refusal of a body that is too long while the body still arrives', async () => {
    const five = 5_000_000;
    const head = bytesOf({ fields: CHUNKED });
    const pouring = Buffer.concat([head, Buffer.from(`${five.toString(16)}\r\n`), Buffer.alloc(five, ' ')]);
    const [response, ...others] = responsesIn(await exchange(service.port, pouring));
    assert.deepEqual([response?.status, response?.fields.get('connection'), others], [413, 'close', []]);
  });

  test('does not wait for a body, or read it, if header fields or the caller are refused', async () => {
    const bearer = `Authorization: Bearer ${tokenWith({ scope: 'write' })}`;
    const cases: Sent[] = [
      { path: '/guarded', fields: [JSON_TYPE, FIVE] },
      { path: '/guarded?page=1', fields: [JSON_TYPE, FIVE, bearer] },
      { fields: ['Content-Type: text/plain', FIVE] },
      { fields: [JSON_TYPE, FIVE, 'Content-Encoding: gzip'] },
      { fields: [JSON_TYPE, `Content-Length: ${LIMIT_BYTES + 1}`] },
    ];
    for (const sent of cases) {
      requests.length = 0;
      const wire = await openWire(service.port);
      wire.send(bytesOf(sent));
      await wire.until((text) => text.endsWith('}'));
      wire.destroy();
      const readers = requests.map((request) => request.listenerCount('close'));
      assert.deepEqual(readers, [0]);
    }
  });

  test('answers pipelined requests in order, each by its own body [RFC 9112 §9.3.2]', async () => {
    const bodies = Array.from({ length: 30 }, (_, index) => `{"index":${index}}`);
    const many = bodies.map((text, index) =>
      index % 2 === 0
        ? bytesOf({ body: text })
        : bytesOf({ fields: CHUNKED, body: chunked(text.slice(0, 3), text.slice(3)) }),
    );
    const wire = await openWire(service.port);
    wire.send(Buffer.concat([...many, next]));
    const responses = responsesIn(await wire.untilClosed());
    assert.deepEqual(
      responses.map(({ text }) => text),
      [...bodies.map((text) => `{"body":${text}}`), '{}'],
    );
  });

  function nestedDeep(): string {
    return `${'['.repeat(65)}${']'.repeat(65)}`;
  }
});

test('a query and a body are checked before their handler runs, even if the global Promise has been replaced', async (t) => {
  const own = globalThis.Promise;
  t.after(() => {
    globalThis.Promise = own;
  });
  globalThis.Promise = class<Value> extends own<Value> {};
  assert.equal((await responseTo({ path: '/judged', body: '{}' })).status, 422);
  assert.equal((await responseTo({ path: '/judged?page=x', body: '{"item":"tea"}' })).status, 400);
});

/* What a handler may return, and what it may not set. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { Duplex, Readable, Writable } from 'node:stream';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { created, fail, noContent, reply, type Headers } from '../../../src/service/routes/handler-reply.ts';
import { HandlerReply, replyToResult } from '../../../src/service/routes/handler-result.ts';

const ALWAYS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };
const AS_JSON = { ...ALWAYS, 'content-type': 'application/json; charset=utf-8' };

/** The fields of a reply by name in lower case. None may occur twice. */
function fieldsOf({ reply: { fields } }: HandlerReply): Record<string, string> {
  const names = fields.filter((_, index) => index % 2 === 0);
  assert.equal(new Set(names.map((name) => name.toLowerCase())).size, names.length);
  return Object.fromEntries(names.map((name, index) => [name.toLowerCase(), fields[index * 2 + 1] ?? '']));
}

test('reply makes a reply of the given status, JSON and fields', () => {
  const made = reply(202, { id: 'é' }, { Location: '/jobs/1', 'X-Count': '5' });
  assert.deepEqual(
    [made.reply.status, made.reply.content, made.turnedAway !== undefined],
    [202, '{"id":"é"}', false],
  );
  assert.deepEqual(fieldsOf(made), {
    ...AS_JSON,
    location: '/jobs/1',
    'x-count': '5',
    'content-length': '11',
  });
});

test('reply without a body has no type, and has a length unless content is impossible [RFC 9110 §8.6]', () => {
  for (const status of [200, 201, 202, 205, 404, 500, 599]) {
    assert.equal(reply(status).reply.content, '');
    assert.deepEqual(fieldsOf(reply(status)), { ...ALWAYS, 'content-length': '0' });
  }
  for (const status of [204, 304]) assert.deepEqual(fieldsOf(reply(status)), ALWAYS);
});

test('reply sends a copy of the bytes, with the given type', () => {
  const bytes = Uint8Array.of(1, 2, 255);
  const made = reply(200, bytes, { 'content-TYPE': 'image/png' });
  bytes.fill(0);
  assert.deepEqual(made.reply.content, Buffer.of(1, 2, 255));
  assert.deepEqual(fieldsOf(made), { ...ALWAYS, 'content-type': 'image/png', 'content-length': '3' });
  for (const headers of [undefined, { 'Content-Type': '' }]) {
    assert.throws(() => reply(200, bytes, headers), {
      name: 'TypeError',
      message: 'bytes need a Content-Type',
    });
  }
});

test('reply lets a handler set caching and type of its JSON, but not allow sniffing', () => {
  const said: Headers = {
    'Cache-Control': 'public, max-age=60',
    'Content-Type': 'application/problem+json',
    'X-Content-Type-Options': 'sniff',
  };
  assert.deepEqual(fieldsOf(reply(200, {}, said)), {
    'cache-control': 'public, max-age=60',
    'content-type': 'application/problem+json',
    'x-content-type-options': 'nosniff',
    'content-length': '2',
  });
});

test('created has a Location, and noContent is empty [RFC 9110 §15.3.2, §15.3.5]', () => {
  assert.deepEqual([created('/a/1').reply.status, fieldsOf(created('/a/1')).location], [201, '/a/1']);
  assert.equal(created('/a/1', [1]).reply.content, '[1]');
  assert.deepEqual([noContent().reply.status, noContent().reply.content], [204, '']);
});

test('fail has an error and a message, and may be thrown', () => {
  const failure = fail(404, 'not_found', 'There is no such order');
  assert.deepEqual([failure.reply.status, failure.turnedAway !== undefined], [404, true]);
  assert.equal(failure.reply.content, '{"error":"not_found","message":"There is no such order"}');
  assert.deepEqual(fieldsOf(failure), { ...AS_JSON, 'content-length': '56' });
});

test('sends server_error and Internal Server Error in place of what is empty [§6]', () => {
  const { content } = fail(503, '', '').reply;
  assert.equal(content, '{"error":"server_error","message":"Internal Server Error"}');
});

test('fail accepts only a status from 400 to 599', () => {
  for (const status of [400, 599]) assert.equal(fail(status, 'a', 'b').reply.status, status);
  for (const status of [200, 399]) {
    const message = 'fail needs a status from 400 to 599';
    assert.throws(() => fail(status, 'a', 'b'), { name: 'TypeError', message });
  }
  for (const status of [600, NaN, 404.5]) assert.throws(() => fail(status, 'a', 'b'), TypeError);
});

test('reply throws for a status that is not a whole number from 200 to 599', () => {
  for (const status of [100, 101, 199, 600, 0, -200, 200.5, NaN, Infinity]) {
    assert.throws(() => reply(status), {
      name: 'TypeError',
      message: 'a reply needs a status from 200 to 599',
    });
  }
});

test('reply throws for a status that is not a number, since the content depends on the status [RFC 9110 §15.3.5]', () => {
  for (const status of ['204', [304], new Number(205)]) {
    assert.throws(() => reply(status as number, { a: 1 }), TypeError);
  }
});

const endless: { self?: object } = {};
endless.self = endless;

for (const [what, body, words] of [
  ['a BigInt', { amounts: [1n] }, /BigInt/],
  ['a cycle', endless, /circular|cyclic/],
] as const) {
  test(`a body with ${what} is refused with a sentence, and its cause is in the words of the engine [§11]`, () => {
    assert.throws(
      () => reply(200, body),
      ({ message, cause }: Error) => {
        assert.equal(message, 'a body must not have a BigInt or itself in it; convert it');
        assert.match(String(cause), words);
        return true;
      },
    );
  });
}

test('what a toJSON throws leaves reply as it is, even if its message throws when read [§11]', () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const message = { get: () => assert.fail('read') };
  const unreadable = Object.defineProperty(new Error(), 'message', message);
  const similar = new TypeError('I cannot serialize BigInt');
  for (const thrown of [undefined, null, proxy, { message: Symbol('secret') }, unreadable, similar]) {
    const toJSON = () => {
      throw thrown;
    };

    assert.throws(
      () => reply(200, { toJSON }),
      (error) => Object.is(error, thrown),
    );
  }
});

test('a reply inside a body is a bug, not a part of a 200 body', () => {
  const failure = fail(403, 'forbidden', 'no');
  const fault = new TypeError('a body has a reply in it, or another copy of this package made the reply');
  for (const body of [failure, [failure], { data: failure }]) {
    assert.throws(() => reply(200, body), fault);
  }
  assert.throws(() => replyToResult([failure], 'GET'), fault);
});

test('a reply refuses header fields that it would silently lose', () => {
  const fields = { 'Content-Security-Policy': "default-src 'none'" };
  const fault = new TypeError('headers must be a plain object');
  for (const lost of [new globalThis.Headers(fields), new Map(Object.entries(fields)), [['a', 'b']]]) {
    assert.throws(() => reply(200, {}, lost as unknown as Headers), fault);
  }
});

test('reply accepts every valid name and value of a field in ASCII [RFC 9110 §5.5, §5.6.2]', () => {
  for (const [name, value] of [
    ["!#$%&'*+-.^_`|~09AZaz", 'a'],
    ['A', ''],
    ['A', '!\t "~'],
    ['Proxy-Status', 'a'],
  ] as const) {
    assert.equal(fieldsOf(reply(200, {}, { [name]: value }))[name.toLowerCase()], value);
  }
});

for (const [what, [name, value]] of Object.entries<readonly [name: string, value?: string]>({
  'a name with a colon': ['A:', '1'],
  'a name with a space': ['A b', '1'],
  'a name with a line break': ['A\r\nB', '1'],
  'a name beyond ASCII': ['Ä', '1'],
  'a name that is ASCII only in lower case': ['\u212aey', '1'],
  'an empty name': ['', '1'],
  'a value with a line break': ['A', '1\r\nB: 2'],
  'a value with a line feed': ['A', '1\n'],
  'a value with a null byte': ['A', '\0'],
  'a value with a deleted character': ['A', '\x7f'],
  'a value beyond Latin-1': ['A', '中'],
  'a value beyond ASCII': ['A', '\xe9'],
  'a value that begins with a space': ['A', ' 1'],
  'a value that ends with a tab': ['A', '1\t'],
  'no value': ['A'],
})) {
  test(`reply throws if a header field has ${what} [RFC 9110 §5.5, §5.6.2]`, () => {
    const message = 'a header field cannot be sent; its name must be a token, and its value printable ASCII';
    const headers = { B: '2', [name]: value as string };
    assert.throws(() => reply(200, {}, headers), { name: 'TypeError', message });
  });
}

test('reply accepts exactly the characters in names and values that Node can write, in ASCII [RFC 9110 §5.5, §5.6.2]', () => {
  const isDone = (action: () => unknown) => {
    try {
      action();
      return true;
    } catch {
      return false;
    }
  };

  for (let code = 0; code < 0x300; code += 1) {
    const text = String.fromCharCode(code);
    const isInAscii = code < 0x80;
    assert.deepEqual(
      [isDone(() => reply(200, {}, { [text]: '' })), isDone(() => reply(200, {}, { A: `1${text}1` }))],
      [isDone(() => validateHeaderName(text)), isInAscii && isDone(() => validateHeaderValue('A', text))],
      `the character ${code}`,
    );
  }
});

test('a reply with 204, 205 or 304 has no body [RFC 9110 §15.3.5, §15.3.6, §15.4.5]', () => {
  for (const status of [204, 205, 304]) {
    const message = `a reply with ${status} must not have a body`;
    assert.throws(() => reply(status, {}), { name: 'TypeError', message });
  }
});

const REFUSED = [
  'Connection',
  'Content-Length',
  'Keep-Alive',
  'Proxy-Authenticate',
  'Proxy-Authentication-Info',
  'Proxy-Authorization',
  'Proxy-Connection',
  'Set-Cookie',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'WWW-Authenticate',
];

for (const name of REFUSED) {
  test(`a reply cannot set ${name} [RFC 9110 §7.6.1, §8.6, §11.6.1]`, () => {
    for (const spelling of [name, name.toLowerCase(), name.toUpperCase()]) {
      assert.throws(() => reply(200, {}, { [spelling]: 'x' }), {
        name: 'TypeError',
        message: `${name.toLowerCase()} must not be set by a reply; a Response may set set-cookie and www-authenticate`,
      });
    }
  });
}

test('a reply can set fields that only resemble the forbidden ones [RFC 9110 §7.6.1]', () => {
  for (const name of [
    'X-Connection',
    'Connection-Id',
    'X-Set-Cookie',
    'Upgrade-Notice',
    'X-Rate',
    'Test',
    'Proxy',
  ]) {
    assert.equal(fieldsOf(reply(200, {}, { [name]: 'x' }))[name.toLowerCase()], 'x');
  }
});

test('reply and created throw for a field that cannot be sent [RFC 9110 §5.1, §5.5]', () => {
  for (const name of ['', 'a b', 'a:b', 'a\r\nb', 'é', 'a\0']) {
    assert.throws(() => reply(200, {}, { [name]: 'x' }), TypeError, JSON.stringify(name));
  }
  for (const value of ['a ', 'a\t', ' a', 'a\r\nSet-Cookie: b', 'a\nb', '\0', '\u20ac', '\x7f']) {
    assert.throws(() => reply(200, {}, { 'X-A': value }), TypeError, JSON.stringify(value));
    assert.throws(() => created(value), TypeError);
  }
});

const circular: { self?: object } = {};
circular.self = circular;

/** Objects to TypeScript that have no JSON, or JSON of another kind. */
const NO_JSON: Readonly<Record<string, object>> = {
  'a date, which is a string in JSON': new Date(),
  'an invalid date, which is null in JSON': new Date(NaN),
  'a URL, which is a string in JSON': new URL('https://a.example/'),
  'a String object': Object('text'),
  'a Number object': Object(5),
  'a Boolean object': Object(true),
  'a BigInt object': Object(1n),
  'an object with a BigInt': { amount: 1n },
  'a function': () => {},
  'a class': class {},
  'an object that is a string in JSON': { toJSON: () => '{}' },
  'an object that is a number in JSON': { toJSON: () => 5 },
  'an object that is null in JSON': { toJSON: () => null },
  'an object that JSON leaves out': { toJSON: () => undefined },
  'an object whose JSON throws': { toJSON: () => assert.fail('no JSON') },
  'an object that holds itself': circular,
  'an error': new Error('inside'),
  'an error with members': Object.assign(new Error('inside'), { code: 'E_INSIDE' }),
  'an error with toJSON': Object.assign(new Error('inside'), { toJSON: () => ({}) }),
  'an error of a system call': getSystemError(),
  'an error that holds several errors': new AggregateError([]),
  'a DOMException': new DOMException('inside'),
  'a map': new Map([['a', 1]]),
  'a map with members': Object.assign(new Map(), { a: 1 }),
  'a map of another realm': runInNewContext('new Map()') as object,
  'a set': new Set([1]),
  'a weak map': new WeakMap(),
  'a weak set': new WeakSet(),
  'a weak reference': new WeakRef({}),
  'a Buffer': Buffer.from('a'),
  'a typed array of numbers': new Float64Array(1),
  'a view of bytes': new DataView(new ArrayBuffer(1)),
  'a buffer of bytes': new ArrayBuffer(3),
  'a shared buffer of bytes': new SharedArrayBuffer(3),
  'a Blob': new Blob(['a']),
  'a Response': new Response('{}'),
  'a Request': new Request('http://api.test/'),
  'header fields': new globalThis.Headers({ a: 'b' }),
  'form data': new FormData(),
  'a query': new URLSearchParams('a=b'),
  'an iterator of an array': [1].values(),
  'a custom iterator': {
    next: () => ({ done: true }),
    [Symbol.iterator]: () => [][Symbol.iterator](),
  },
  'a generator': (function* () {})(),
  'an asynchronous generator': (async function* () {})(),
  'an asynchronous iterable with members': { a: 1, [Symbol.asyncIterator]: async function* () {} },
  arguments: (function () {
    return arguments;
  })(),
  'a stream of Node that is read': Readable.from([]),
  'a stream of Node that is written': new Writable(),
  'a stream of Node that is both': new Duplex(),
  'a stream that is read': new ReadableStream(),
  'a stream that is written': new WritableStream(),
  'a stream that is both': new TransformStream(),
  'a promise': Promise.resolve({}),
  'an object with a function then': { sql: 'select', then: () => {} },
  'a regular expression': /a/,
  'a Symbol object': Object(Symbol('x')),
  'a function with toJSON': Object.assign(() => {}, { toJSON: () => ({ b: 2 }) }),
  'an instance of a class without members': new (class {
    #hidden = 1;
    get hidden() {
      return this.#hidden;
    }
  })(),
};

/** As `node:fs` throws it. */
function getSystemError() {
  try {
    return readFileSync('/no/such/file');
  } catch (failure) {
    return failure as object;
  }
}

for (const [what, body] of Object.entries(NO_JSON)) {
  test(`neither the body of a reply nor, but for a Response, the result of a handler may be ${what} [docs/routes-reference.md]`, () => {
    assert.throws(() => reply(200, body), Error);
    assert.throws(() => created('/a', body), Error);
    if (!(body instanceof Response)) assert.throws(() => replyToResult(body, 'GET'), Error);
  });

  // JSON.stringify does not call the `toJSON` of such a result, and no function is a member in JSON.
  if (Object.getPrototypeOf(body) === Object.prototype && 'toJSON' in body) {
    test(`the result of toJSON has no members if it is ${what} [§11]`, () => {
      const source = { toJSON: () => body };
      assert.equal(reply(200, source).reply.content, JSON.stringify(source));
      assert.equal(replyToResult(source, 'GET').content, '{}');
    });
    continue;
  }

  test(`the result of toJSON may not be ${what} either, since it is the outermost value then [§11]`, () => {
    const source = { toJSON: () => body };
    assert.throws(() => reply(200, source), Error);
    assert.throws(() => replyToResult(source, 'GET'), Error);
  });
}

test('a toJSON that its own result has is not called, as JSON.stringify does not call it [§11]', () => {
  const copied = {
    cents: 5,

    toJSON() {
      return { ...this, cents: this.cents * 100 };
    },
  };

  class View {
    readonly shown = 1;

    toJSON() {
      return assert.fail('called');
    }
  }

  for (const [body, text] of [
    [copied, '{"cents":500}'],
    [{ toJSON: () => new View() }, '{"shown":1}'],
    [{ toJSON: () => Object.assign([1], { toJSON: () => [2] }) }, '[1]'],
  ] as const) {
    assert.equal(replyToResult(body, 'GET').content, text);
    assert.equal(JSON.stringify(body), text);
  }
});

test('toJSON is called once and as JSON.stringify calls it, and may return its own object [§11]', () => {
  const keys: unknown[] = [];

  class Money {
    readonly cents = 5;

    toJSON(key: unknown) {
      keys.push(key);
      return keys.length === 1 ? { cents: this.cents } : this;
    }
  }

  assert.equal(reply(200, new Money()).reply.content, '{"cents":5}');
  assert.deepEqual(keys, ['']);
  assert.equal(reply(200, new Money()).reply.content, '{"cents":5}');
  assert.deepEqual(keys, ['', '']);
});

for (const [what, body, text] of [
  ['a nested map has no members', [new Map([['a', 1]])], '[{}]'],
  ['a nested promise has no members', { a: Promise.resolve(1) }, '{"a":{}}'],
  ['an object without prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
  ['an empty object without prototype', Object.create(null), '{}'],
  ['an empty object that inherits from one without prototype', Object.create(Object.create(null)), '{}'],
  ['an empty object of another realm', runInNewContext('({})'), '{}'],
  ['a list of another realm', runInNewContext('[]'), '[]'],
  [
    'an instance has members',
    new (class {
      a = 1;
    })(),
    '{"a":1}',
  ],
  [
    'an instance may have undefined members',
    new (class {
      a = undefined;
    })(),
    '{}',
  ],
  ['a collection with toJSON', Object.assign(new Set([1]), { toJSON: () => [1] }), '[1]'],
  [
    'members named then, pipe and toJSON may be strings',
    { then: 'a', pipe: 'b', toJSON: 'c' },
    '{"then":"a","pipe":"b","toJSON":"c"}',
  ],
  ['NaN and Infinity are null', { a: NaN, b: [Infinity] }, '{"a":null,"b":[null]}'],
  ['undefined members and functions are left out', { a: undefined, b: () => {} }, '{}'],
  ['a nested date is a string', { a: new Date(0) }, '{"a":"1970-01-01T00:00:00.000Z"}'],
  ['an object with toJSON', { toJSON: () => [1] }, '[1]'],
] as const) {
  test(`the result of a handler is serialised as JSON.stringify does: ${what} [docs/routes-reference.md]`, () => {
    assert.equal(replyToResult(body, 'GET').content, text);
    assert.equal(reply(200, body).reply.content, text);
  });
}

test('a handler may return JSON, a reply or, unless the method is GET, nothing', () => {
  assert.deepEqual([replyToResult({ a: 1 }, 'GET').status, replyToResult([], 'POST').content], [200, '[]']);
  const made = reply(299);
  assert.equal(replyToResult(made, 'GET'), made.reply);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    assert.equal(replyToResult(undefined, method).status, 204);
  }
});

test('a returned fail has the same effect as a thrown fail', () => {
  const failure = fail(400, 'a', 'b');
  assert.throws(
    () => replyToResult(failure, 'GET'),
    (thrown) => thrown === failure,
  );
});

test('a body such as a Map, an Error or a Blob throws a TypeError with one fixed message, even in a reply with its own Content-Type [docs/routes-reference.md]', () => {
  const fault = new TypeError(
    'a body must be a plain object, an array or an object with properties; convert it, or give reply() bytes',
  );
  for (const body of [
    new Error('inside'),
    new Map(),
    new ArrayBuffer(3),
    new Float64Array(1),
    new Blob(['a']),
  ]) {
    assert.throws(() => replyToResult(body, 'GET'), fault);
    assert.throws(() => reply(200, body, { 'Content-Type': 'image/png' }), fault);
  }
  assert.throws(() => replyToResult(Buffer.from('a'), 'GET'), fault);
});

test('a result that is null, a primitive or a function throws a TypeError, and so does no result for GET', () => {
  for (const result of [null, 'text', 5, true, 1n, Symbol('x'), () => {}]) {
    assert.throws(() => replyToResult(result, 'POST'), TypeError);
  }
  assert.throws(() => replyToResult(undefined, 'GET'), TypeError);
});

test('a result that has no JSON form throws a TypeError', () => {
  const message =
    'a body must be a plain object, an array or an object with properties; convert it, or give reply() bytes';
  assert.throws(() => replyToResult({ toJSON: () => undefined }, 'GET'), { name: 'TypeError', message });
  assert.throws(() => replyToResult({ amount: 1n }, 'GET'), TypeError);
});

test('a handler of a get route that returns nothing gets an error that says what to return', () => {
  assert.throws(() => replyToResult(undefined, 'GET'), {
    name: 'TypeError',
    message: /returned nothing; return an object, an array or a reply, or fail\(404, \.\.\.\)$/,
  });
});

/* The log: its lines, its levels, and what must never be in one (docs/logs-and-metrics.md). */
import { strict as assert } from 'node:assert';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import Module from 'node:module';
import { compileFunction } from 'node:vm';
import { describe, test } from 'node:test';
import { createLog } from '../../../src/options/log.ts';
import {
  describeBug,
  FETCH_ERROR_REASONS,
  type FetchErrorReason,
  printable,
  printableSetting,
  type Log,
  type LogLevel,
} from '../../../src/verify/base/events.ts';
import { startProvider } from '../../idp/provider.ts';
import { rawJws, signJws } from '../../idp/tokens.ts';
import { startService } from '../../support/service.ts';

const EVENTS: Readonly<Record<Parameters<Log>[0], LogLevel>> = {
  'cannot listen': 'error',
  'signing keys expired': 'error',
  'replay store full': 'error',
  'request failed': 'error',
  'unforeseen error': 'error',
  'log lines dropped': 'error',
  'start failed': 'error',
  'stop failed': 'error',
  'hook failed': 'error',
  'error messages are logged': 'warn',
  'unknown setting ignored': 'warn',
  'resource is not an audience': 'warn',
  'signing keys not from the provider': 'warn',
  'signing key skipped': 'warn',
  'signing keys could not be fetched': 'warn',
  'replay store lost': 'warn',
  'revocation store lost': 'warn',
  'introspection not from the provider': 'warn',
  'introspection lost': 'warn',
  'decision lost': 'warn',
  'signing keys loaded': 'info',
  'replay store ready': 'info',
  'revocation store ready': 'info',
  'introspection ready': 'info',
  'decision ready': 'info',
  'requests refused': 'info',
  listening: 'info',
  'shutting down': 'info',
  stopped: 'info',
  'request refused': 'debug',
  request: 'info',
};

/** Most serious first. */
const LEVELS: readonly LogLevel[] = ['silent', 'error', 'warn', 'info', 'debug'];
const events = Object.entries(EVENTS) as [Parameters<Log>[0], LogLevel][];

/** An error with a deeper stack than V8 writes. */
const deepError = (message: string, depth = Error.stackTraceLimit): Error =>
  depth === 0 ? new Error(message) : deepError(message, depth - 1);

/** What this code throws in a file of this name. */
function thrownAt(filename: string, code = 'throw new Error("m");'): unknown {
  const run = compileFunction(code, [], { filename });
  try {
    return run();
  } catch (error) {
    return error;
  }
}

describe('the log', () => {
  test('writes one JSON line per event: time, level, message, fields', () => {
    const lines: string[] = [];
    let now = 86_400_000;
    const log = createLog(
      'info',
      (line) => lines.push(line),
      () => now,
    );
    log('listening', { port: 1, address: printable('::'), reason: 'drained' });
    log('shutting down', {});
    now += 1;
    log('stopped', { reason: undefined });
    assert.deepEqual(lines, [
      '{"time":"1970-01-02T00:00:00.000Z","level":"info","message":"listening","port":1,"address":"::","reason":"drained"}\n',
      '{"time":"1970-01-02T00:00:00.000Z","level":"info","message":"shutting down"}\n',
      '{"time":"1970-01-02T00:00:00.001Z","level":"info","message":"stopped"}\n',
    ]);
  });

  LEVELS.forEach((level, index) => {
    test(`writes at level ${level} only what is at least as serious`, () => {
      const written: Record<string, unknown> = {};

      const write = (line: string) => {
        written[JSON.parse(line).message] = JSON.parse(line).level;
      };

      // Each needs a log of its own: nothing follows `stopped`.
      for (const [message] of events) createLog(level, write, () => 0)(message, {});
      assert.deepEqual(
        written,
        Object.fromEntries(events.filter(([, grade]) => LEVELS.indexOf(grade) <= index)),
      );
    });
  });

  for (const [whose, show, length] of [
    ['from outside', printable, 64],
    ['that the operator wrote', printableSetting, 256],
  ] as const) {
    test(`shows at most ${length} printable ASCII characters of text ${whose}`, () => {
      assert.equal(show(' az~AZ09"\\'), ' az~AZ09"\\');
      assert.equal(show('a\x1fb\x7fc\r\nd\té\u4e2d\u2028\0'), 'a?b?c??d?????');
      assert.equal(show('x'.repeat(length)), 'x'.repeat(length));
      assert.equal(show(`${'x'.repeat(length - 1)}yz`), `${'x'.repeat(length - 1)}y`);
    });
  }

  test('drops lines while more than a mebibyte is unread, and then says how many [H3]', () => {
    const lines: Record<string, unknown>[] = [];
    let unread = 2 ** 20;
    const log = createLog(
      'error',
      (line) => lines.push(JSON.parse(line)),
      () => 0,
      () => unread,
    );
    const told = () => lines.splice(0).map(({ level, message, lines: count }) => [level, message, count]);
    const failed = ['error', 'request failed', undefined];

    log('request failed', {});
    assert.deepEqual(told(), [failed], 'a mebibyte is not too much');

    unread += 1;
    log('request failed', {});
    unread -= 1;
    log('request failed', {});
    assert.deepEqual(told(), [['error', 'log lines dropped', 1], failed]);

    unread += 1;
    log('request failed', {});
    log('request failed', {});
    log('shutting down', {});
    assert.deepEqual(told(), []);

    unread -= 1;
    log('shutting down', {});
    assert.deepEqual(told(), [], 'a line below the level is none');
    log('request failed', {});
    log('request failed', {});
    assert.deepEqual(told(), [['error', 'log lines dropped', 2], failed, failed]);
  });

  test('logs the name of a bug and eight frames of at most 128 characters, but not its message', () => {
    const path = `${'/deep'.repeat(40)}/file.ts`;
    const fall =
      'const fall = (left) => { if (left === 0) throw new RangeError("secret"); fall(left - 1); }; fall(20);';
    const { frames, ...others } = describeBug(thrownAt(path, fall));
    assert.deepEqual(others, { reason: 'bug', error: 'RangeError' });
    assert.ok(Array.isArray(frames) && frames.length === 8);
    for (const frame of frames) assert.match(frame, /^[ep/d]{100,121}\/file\.ts:1:\d+$/);
  });

  test('counts only what it shows among the eight frames, not what runs between them without a file', () => {
    // Of ten places that V8 keeps, three are of `map`, which has no file.
    const fall =
      'const fall = (left) => { if (left === 0) throw new Error("m"); [0].map(() => fall(left - 1)); }; fall(9);';
    assert.equal([describeBug(thrownAt('/a.ts', fall)).frames].flat().length, 7);
  });

  test('shows the file, line and column of a frame, but not the function, whose name may be made from data', () => {
    for (const path of ['/app/src/a.ts', 'file:///app/src/b.ts', '/app/(1)/d.ts', '/my app/at g.ts']) {
      const named = 'const named = { ["eyJh"]() { throw new Error("m"); } }; named.eyJh();';
      const { frames } = describeBug(thrownAt(path, named));
      assert.ok(Array.isArray(frames));
      assert.deepEqual(frames.slice(0, 2), [`${path}:1:36`, `${path}:1:63`]);
      assert.doesNotMatch(JSON.stringify(frames), /eyJh/);
    }
  });

  test('shows a whole frame whose path is as long as that of a package inside a package', () => {
    const path =
      '/srv/orders/node_modules/.pnpm/gatehouse-http@0.1.0/node_modules/gatehouse-http/dist/service/http/pipeline.js';
    assert.deepEqual([describeBug(thrownAt(path)).frames].flat()[0], `${path}:1:7`);
  });

  test('bounds the name of a bug, which the code that throws it can choose', () => {
    const error = new Error('m');
    error.name = 'b'.repeat(100);
    assert.equal(describeBug(error).error, 'b'.repeat(64));
  });

  test('shows no name of a bug that is not one word, since it may hold data', () => {
    for (const name of ['secret of alice', 'secret-4711', 'a\nb', '', 'x.secret', 'sécret']) {
      assert.equal(describeBug(Object.assign(new Error('m'), { name })).error, 'Error', name);
    }
  });

  test('shows where a real bug was thrown', () => {
    const { frames } = describeBug(new Error('secret'));
    assert.ok(Array.isArray(frames) && frames.length > 0, 'no place');
    assert.match(String(frames[0]), /events\.wire\.test\.[jt]s:\d+:\d+$/);
  });

  test('shows no line of a message as a frame, whatever it looks like', () => {
    for (const message of ['one\n    at secret', 'one\n    at secret\ntwo', '\n at secret\n']) {
      assert.doesNotMatch(JSON.stringify(describeBug(new Error(message))), /secret/, JSON.stringify(message));
    }
  });

  test('shows no frame of an error whose stack has been written or read, since its text may come from anywhere [docs/logs-and-metrics.md]', () => {
    const written = new RangeError('m');
    written.stack = 'RangeError: m\n    at a (/a.js:1:1)';
    const appended = new Error('m');
    appended.stack += '\n    at a (/eyJh.js:1:2)';
    const read = new Error('m');
    assert.ok(read.stack);
    const defined = Object.defineProperty(new Error('m'), 'stack', {
      get: () => 'Error: m\n    at a (/a.js:1:1)',
    });
    const derived = Object.create(new Error('m'));
    for (const error of [written, appended, read, defined]) assert.deepEqual(describeBug(error).frames, []);
    assert.doesNotMatch(JSON.stringify(describeBug(derived)), /eyJh/);
  });

  test('leaves the stack of an error and the formatter of stacks as they were', () => {
    const [error, other] = [1, 2].map(() => new Error('m'));
    const before = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
    describeBug(error);
    // With source maps, only Node's own formatter names the sources.
    assert.match(error?.stack ?? '', /^Error: m\n    at .*events\.wire\.test\.[jt]s:\d+:\d+/);
    assert.equal(error?.stack, other?.stack);
    assert.deepEqual(Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace'), before);
  });

  test('names the line and column of a frame in the source if source maps are on [docs/logs-and-metrics.md]', (t) => {
    const wereOn = process.sourceMapsEnabled;
    process.setSourceMapsEnabled(true);
    t.after(() => process.setSourceMapsEnabled(wereOn));
    // Each column has a place of its own, in the third line.
    const map = { version: 3, sources: ['made.ts'], names: [], mappings: `AAEA${',CAAC'.repeat(40)}` };
    const address = `data:application/json;base64,${btoa(JSON.stringify(map))}`;
    const text = `exports.make = () => new Error();\n//# sourceMappingURL=${address}`;
    const made = new Module('/made.js');
    Reflect.apply(Reflect.get(made, '_compile'), made, [text, '/made.js']);

    const { frames } = describeBug(made.exports.make());
    assert.equal(Array.isArray(frames) && frames[0], 'file:///made.ts:3:22');
  });

  test('shows the frames of an error again, and leaves its stack to a formatter of the program', (t) => {
    const usual = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
    t.after(() => {
      Reflect.deleteProperty(Error, 'prepareStackTrace');
      if (usual !== undefined) Object.defineProperty(Error, 'prepareStackTrace', usual);
    });
    Error.prepareStackTrace = ({ message }) => `${message}\n    at a (/eyJh.js:1:2)`;
    const error = new Error('m');
    const { frames } = describeBug(error);
    assert.ok(Array.isArray(frames) && frames.length > 0);
    assert.deepEqual(describeBug(error).frames, frames);
    assert.doesNotMatch(JSON.stringify(frames), /eyJh/);
    assert.match(error.stack ?? '', /eyJh/);
  });

  test('shows no text of a function whose name has lines like frames', () => {
    const name = 'x (/eyJh.js:1:2)\n    at /eyJh.js:1:2\n    at y';
    const named = { [name]: () => describeBug(new Error('m')) };
    const { frames } = named[name]!();
    assert.ok(Array.isArray(frames) && frames.length > 0);
    assert.doesNotMatch(JSON.stringify(frames), /eyJh/);
  });

  test('shows frames of an error that is frozen, and of one whose stack no error class made', () => {
    const holder = {};
    Error.captureStackTrace(holder);
    for (const thrown of [Object.freeze(new Error('m')), holder]) {
      const { error, frames } = describeBug(thrown);
      assert.deepEqual([error, Array.isArray(frames) && frames.length > 0], ['Error', true]);
    }
  });

  test('logs only the type of an object that merely has a stack and a name', () => {
    const thrown = { name: 'secret', message: 'm', stack: 'Error: m\n    at a (/eyJh.js:1:2)' };
    assert.deepEqual(describeBug(thrown), { reason: 'bug', error: 'object' });
  });

  test('shows the frames of every kind of error that has not been changed', () => {
    const named = (name: string, message?: string) => Object.assign(new Error(message), { name });
    const kinds: (() => unknown)[] = [
      () => AbortSignal.abort().throwIfAborted(),
      () => new URL('x'),
      () => structuredClone(() => {}),
      () => readFileSync('/nowhere'),
      () => 'x'.repeat(-1),
      () => {
        throw new AggregateError([new Error('a')], 'm');
      },
      ...['NotFound', 'Validation Error', 'ÜberError'].flatMap((name) =>
        [undefined, 'm'].map((message) => () => {
          throw named(name, message);
        }),
      ),
      // As of a library that computes its message.
      () => {
        throw Object.defineProperty(new Error(), 'message', { get: () => 'm' });
      },
    ];
    for (const kind of kinds) {
      assert.throws(kind, (error) => {
        const { frames } = describeBug(error);
        assert.ok(Array.isArray(frames) && frames.length > 0, String(error));
        return true;
      });
    }
  });

  test('shows no frame of a cause that was added below the stack, and no frame at all when stackTraceLimit is 0', () => {
    const cause = new Error('one\n    at a (/eyJh.js:1:1)\nend');
    const error = new Error('m');
    error.stack += `\nCaused by: ${cause.stack}`;
    assert.doesNotMatch(JSON.stringify(describeBug(error)), /eyJh/);
    const cut = new Error('one\n    at a (/eyJh.js:1:1)\nend');
    assert.match(cut.stack ?? '', /eyJh/);
    cut.message = 'one';
    assert.doesNotMatch(JSON.stringify(describeBug(cut)), /eyJh/);
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    const frames = [cut, new Error('m')].map((one) => describeBug(one).frames);
    Error.stackTraceLimit = stackTraceLimit;
    assert.deepEqual(frames, [[], []]);
  });

  test('shows as a frame only a source file or a Node module, with line and column [docs/logs-and-metrics.md]', () => {
    const first = (file: string) => [describeBug(thrownAt(file)).frames].flat()[0];
    for (const file of [
      'file:///a/b.mjs',
      '/a (1)/b.ts',
      '/a/b.cts',
      '/a at /b.js',
      'C:\\Program Files (x86)\\b.js',
      'node:internal/process/task_queues',
    ]) {
      assert.equal(first(file), `${file}:1:7`);
    }
    for (const file of [
      'eyJh.eyJz.c2ln',
      '/eyJh.eyJz.c2ln',
      'file:///eyJh',
      'node:eyJh',
      'data:text/javascript,eyJh.js',
      'https://eyJh.js',
      '/a.js:1:1 eyJh',
      '[eval]',
    ]) {
      assert.doesNotMatch(String(first(file)), /eyJh|eval/, file);
    }
  });

  for (const [what, change] of [
    ['is changed', (error: Error) => Object.assign(error, { message: 'other' })],
    ['is lengthened', (error: Error) => Object.assign(error, { message: `other: ${error.message}` })],
    ['is removed', (error: Error) => Object.assign(error, { message: '' })],
  ] as const) {
    for (const [where, text] of [
      ['within', 'one\n    at eyJh.eyJz.c2ln:1:1\ntwo'],
      ['at the end', 'one\n    at eyJh.eyJz.c2ln:1:1'],
      ['at the end, like a path', 'one\n    at a (/eyJh.eyJz.c2ln:1:1)'],
      ['at the end, like a file', 'one\n    at a (file:///eyJh.js:1:1)'],
      ['at the start', '\n    at a (file:///eyJh.js:1:1)'],
    ]) {
      test(`shows no line of a message as a frame (${where}) when the message ${what} after the stack was read [docs/logs-and-metrics.md]`, () => {
        const error = new Error(text);
        assert.match(error.stack ?? '', /eyJh/);
        assert.deepEqual(describeBug(change(error)).frames, []);
      });
    }
  }

  test('shows no leftover of a shortened message as a frame, even if the stack is as deep as V8 keeps it', () => {
    const error = deepError('one\n    at a (file:///eyJh.js:1:1)');
    assert.match(error.stack ?? '', /eyJh/);
    assert.deepEqual(describeBug(Object.assign(error, { message: 'one' })).frames, []);
  });

  test('shows the frames of an error, none of its cause, and none of its message', () => {
    const cause = new Error('one\n    at a (file:///eyJh.js:1:1)');
    for (const error of [cause, new Error('other', { cause })]) {
      const shown = JSON.stringify(describeBug(error).frames);
      assert.doesNotMatch(shown, /eyJh/);
      assert.match(shown, /events\.wire\.test\.[jt]s:\d+:\d+/);
    }
  });

  test('shows no frame from text that replaced the stack [docs/logs-and-metrics.md]', () => {
    const text = 'one\n    at eyJh.eyJz.c2ln:1:1';
    for (const stack of [text, `${text}\n`, `${text}\n    at a (/eyJh.eyJz.c2ln:1:1)`, [text], { text }]) {
      const assigned = Object.assign(new Error('m'), { stack });
      const read = Object.defineProperty(new Error('m'), 'stack', { get: () => stack });
      for (const error of [assigned, read]) assert.deepEqual(describeBug(error).frames, []);
    }
  });

  test('logs only the type of a thrown value that is not an error', () => {
    for (const [thrown, error] of [
      ['secret', 'string'],
      [{ secret: 1 }, 'object'],
      [null, 'object'],
      [undefined, 'undefined'],
    ] as const) {
      assert.deepEqual(describeBug(thrown), { reason: 'bug', error });
    }
    const bare = new Error('secret');
    delete bare.stack;
    assert.deepEqual(describeBug(bare), { reason: 'bug', error: 'Error', frames: [] });
  });

  test('shows the frames of an error whose name throws when it is read, or has no text', () => {
    const getter = Object.defineProperty(new Error('m'), 'name', {
      get: () => {
        throw new Error('secret');
      },
    });
    const textless = Object.assign(new Error('m'), { name: Object.create(null) });
    for (const thrown of [getter, textless]) {
      const { error, frames } = describeBug(thrown);
      assert.equal(error, 'Error');
      assert.match(String(frames), /events\.wire\.test\.ts:\d+:\d+/);
    }
  });

  test('survives a thrown value that throws when it is read', () => {
    const raise = () => {
      throw new Error('secret');
    };

    const getter = Object.defineProperty(new Error('m'), 'stack', { get: raise });
    assert.deepEqual(describeBug(getter), { reason: 'bug', error: 'Error', frames: [] });
    const { proxy, revoke } = Proxy.revocable(new Error('m'), {});
    revoke();
    const hostile = [proxy, new Proxy(new Error('m'), { get: raise, getPrototypeOf: raise })];
    for (const thrown of hostile) {
      assert.deepEqual(describeBug(thrown), { reason: 'bug', error: 'object' });
    }
  });
});

const FETCH_REASONS: Readonly<Record<FetchErrorReason, true>> = {
  timeout: true,
  'connection-failed': true,
  'certificate-refused': true,
  'token-file-refused': true,
  'ca-file-refused': true,
  'proxy-refused': true,
  'proxy-failed': true,
  'status-refused': true,
  'too-large': true,
  'not-a-json-object': true,
  'issuer-mismatch': true,
  'address-refused': true,
  'not-a-key-set': true,
  'too-many-keys': true,
  'no-usable-key': true,
  unforeseen: true,
};

test('lists every reason why a fetch of keys fails, for the metrics', () =>
  assert.deepEqual(FETCH_ERROR_REASONS, Object.keys(FETCH_REASONS)));

const SLICE = 20;

const slicesOf = (text: string) =>
  Array.from({ length: Math.max(0, text.length - SLICE + 1) }, (_, index) =>
    text.slice(index, index + SLICE),
  );

/** The secrets of which 20 consecutive characters occur in the text. */
function leaked(secrets: readonly string[], text: string): string[] {
  const present = new Set(slicesOf(text));
  return secrets.filter((secret) => slicesOf(secret).some((slice) => present.has(slice)));
}

test('the leak check of this file finds 20 characters of a secret, but not 19', () => {
  const secret = 'abcdefghijklmnopqrstuvwxyz';
  assert.deepEqual(
    [leaked([secret], `..${secret.slice(3, 23)}..`), leaked([secret], `..${secret.slice(3, 22)}..`)],
    [[secret], []],
  );
});

test('puts no token, signature or key into a log line or a reply', async (t) => {
  const provider = await startProvider();
  t.after(() => provider.stop());
  const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const { privateKey, kid } = provider.signingKey;
  const header = { alg: 'RS256', typ: 'JWT', kid };
  const strange = stranger.privateKey.export({ format: 'jwk' });
  const [head, payload, signature] = provider.issue().split('.') as [string, string, string];
  const now = Math.floor(Date.now() / 1000);

  const tokens: Readonly<Record<string, string>> = {
    accepted: provider.issue({ scope: 'read:messages' }),
    'scope-missing': provider.issue({ scope: 'other' }),
    expired: provider.issue({ exp: now - 1 }),
    'not-yet-valid': provider.issue({ nbf: now + 3_600 }),
    'issuer-mismatch': provider.issue({ iss: 'https://other.test/' }),
    'audience-mismatch': provider.issue({ aud: 'https://other.test' }),
    'subject-malformed': provider.issue({ sub: 7 }),
    'id-token': provider.issue({ nonce: 'n' }),
    'bound-token': provider.issue({ cnf: { jkt: 'A'.repeat(43) } }),
    'signature-mismatch': signJws({ ...header, jwk: strange }, { sub: 'a' }, stranger.privateKey),
    'key-unknown': signJws({ ...header, kid: `unknown-${signature}` }, { sub: 'a' }, privateKey),
    'algorithm-refused': signJws({ ...header, alg: 'RS512' }, { sub: 'a' }, privateKey),
    'critical-header': provider.issue({}, { crit: [signature] }),
    'type-refused': provider.issue({}, { typ: `${head}.${payload}` }),
    'header-malformed': rawJws('[1,2,3,4,5,6,7,8,9,10]', '{"sub":"someone"}', () => Buffer.alloc(256, 7)),
    'payload-malformed': rawJws(JSON.stringify(header), '{"sub":"someone"', () => Buffer.alloc(256, 7)),
    'token-malformed': `${head}.${payload}.${signature}.${signature}`,
    'credentials-malformed': `${head}.${payload}.${signature},${head}`,
  };
  const key = strange.n!;
  const published = { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig' };
  const service = await startService({ provider, environment: { PROFILE: 'B', IDP_DPOP_MODE: 'ALLOWED' } });
  t.after(() => service.stop());
  const secrets = [
    ...Object.values(tokens),
    head,
    payload,
    signature,
    key,
    strange.d!,
    published.n!,
    published.d!,
  ];

  const seen: string[] = [];

  const ask = async (...request: Parameters<typeof service.ask>) => {
    const { rawHeaders, text, status } = await service.ask(...request);
    seen.push(rawHeaders.join('\n'), text);
    return status;
  };

  for (const [reason, token] of Object.entries(tokens)) {
    const before = service.logs.length;
    const status = await ask('/api/messages', { token });
    const found = service.logs.slice(before).find(({ message }) => message === 'request refused')?.reason;
    assert.deepEqual(
      [status === 200, found],
      [reason === 'accepted', reason === 'accepted' ? undefined : reason],
    );
    await ask('/api/feed', { headers: { Authorization: `DPoP ${token}` } });
    await ask('/api/private', { headers: { Authorization: [`Bearer ${token}`, `Bearer ${token}`] } });
    await ask(`/api/messages?access_token=${token}`);
    await ask(`/${token}`, {
      token,
      headers: { DPoP: token, Origin: `https://${token}` },
      method: 'POST',
      body: token,
    });
    await ask('/api/private', { headers: { Authorization: token, Host: token.slice(0, 200) } });
    await ask('/api/private', { headers: { Authorization: `Basic ${token}`, Expect: token } });
  }
  // Also logs skipped and missing keys, and errors that hold a token.
  provider.publish({
    keys: [published, { kty: 'RSA', kid: 'second', n: key, e: 'AQ' }, { ...strange, kid: 'third' }],
  });
  await service.keys.refresh();
  await provider.fault('all', { redirect: `https://localhost/${tokens.accepted}` });
  await service.keys.refresh();
  const cold = await startService({ provider, fetchKeys: () => Promise.reject(new Error(tokens.accepted)) });
  t.after(() => cold.stop());
  assert.equal(await cold.ask('/api/private', { token: tokens.accepted! }).then(({ status }) => status), 503);

  const logged = [...service.logs, ...cold.logs];
  const messages = new Set(logged.map(({ message }) => message));
  for (const message of ['signing keys loaded', 'request refused', 'signing keys could not be fetched']) {
    assert.ok(messages.has(message), message);
  }
  assert.deepEqual(leaked(secrets, [...seen, ...logged.map((line) => JSON.stringify(line))].join('\n')), []);
});

test('names the key of a refused token once a key was found, and nothing that only the token says [docs/logs-and-metrics.md]', async (t) => {
  const provider = await startProvider();
  t.after(() => provider.stop());
  const kid = 'key\n1';
  const service = await startService({
    provider,
    fetchKeys: async () => ({ keys: [{ ...provider.signingKey.publicJwk, kid }] }),
  });
  t.after(() => service.stop());

  const lineOf = async (token?: string) => {
    await service.ask('/api/private', token === undefined ? {} : { token });
    const { message, status, reason, ...others } = service.logs.at(-1) ?? {};
    return [message, status, reason, 'kid' in others ? others.kid : 'none'];
  };

  assert.deepEqual(await lineOf(provider.issue({ exp: 1 }, { kid })), [
    'request refused',
    401,
    'expired',
    'key?1',
  ]);
  assert.deepEqual(await lineOf(provider.issue({ exp: 1 }, { kid: undefined })), [
    'request refused',
    401,
    'expired',
    'key?1',
  ]);
  assert.deepEqual(await lineOf(provider.issue({}, { kid: 'other' })), [
    'request refused',
    401,
    'key-unknown',
    'none',
  ]);
  assert.deepEqual(await lineOf(), ['request refused', 401, 'no-credentials', 'none']);
});

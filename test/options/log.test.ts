/* What the log says of errors when it may say what they say, for development. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createService, get, open, type ServiceOptions } from '../../src/gatehouse.ts';
import { createLog, jsonLog } from '../../src/options/log.ts';
import { Part } from '../../src/verify/base/option.ts';
import type { LogLevel } from '../../src/verify/base/events.ts';
import { makeIssuer } from '../support/issuer.ts';
import { captureLog } from '../support/captured.ts';

const issuer = makeIssuer();

/** The lines about an error, without the time. */
function linesOf(error: unknown, hasMessages = true, level: LogLevel = 'info') {
  const lines: Record<string, unknown>[] = [];
  const log = createLog(level, (line) => lines.push(JSON.parse(line)), Date.now, undefined, hasMessages);
  log('request failed', { reason: 'bug' }, error);
  return lines.map(({ time, ...others }) => others);
}

/** What the line of an error has besides what it always has. */
function toldOf(error: unknown) {
  const { level, message, reason, ...told } = linesOf(error)[1] ?? {};
  return told;
}

const failure = (message: string, members: object = {}) => Object.assign(new RangeError(message), members);

test('has name, code and message of an error only when it may [§28]', () => {
  const error = failure('no such table', { code: '42P01' });
  const shown = { errorName: 'RangeError', errorCode: '42P01', errorMessage: 'no such table' };
  const line = { level: 'error', message: 'request failed', reason: 'bug' };
  assert.deepEqual(linesOf(error, false), [line]);
  assert.deepEqual(linesOf(error)[1], { ...line, ...shown });
});

for (const level of ['error', 'warn', 'info', 'debug'] as const) {
  test(`says at the start that it has messages of errors, once, at level ${level} [§28]`, () => {
    const lines: string[] = [];
    const log = createLog(level, (line) => lines.push(JSON.parse(line).message), Date.now, undefined, true);
    for (let count = 0; count < 2; count += 1) log('unforeseen error', {});
    assert.deepEqual(lines, ['error messages are logged', 'unforeseen error', 'unforeseen error']);
  });
}

test('says that it has messages of errors even before it says that lines were dropped [§28]', () => {
  const lines: string[] = [];
  let unwritten = Infinity;
  const write = (line: string) => lines.push(JSON.parse(line).message);
  const log = createLog('error', write, Date.now, () => unwritten, true);
  log('unforeseen error', {});
  unwritten = 0;
  log('unforeseen error', {});
  assert.deepEqual(lines, ['error messages are logged', 'log lines dropped', 'unforeseen error']);
});

test('counts each line that it drops once, and none that its level leaves out [H3]', () => {
  const lines: unknown[] = [];
  let unwritten = Infinity;

  const write = (line: string) => {
    const { message, lines: count } = JSON.parse(line);
    lines.push([message, count]);
  };

  const log = createLog('error', write, Date.now, () => unwritten);
  for (const event of ['unforeseen error', 'listening', 'request refused'] as const) log(event, {});
  unwritten = 0;
  for (let count = 0; count < 2; count += 1) log('unforeseen error', {});
  assert.deepEqual(lines, [
    ['log lines dropped', 1],
    ['unforeseen error', undefined],
    ['unforeseen error', undefined],
  ]);
});

for (const [level, ...expected] of [['info', 'stopped'], ['error']] as const) {
  test(`writes nothing after stopped, such as a fetch that fails when the process ends, at level ${level} [§10]`, () => {
    const lines: string[] = [];
    const log = createLog(level, (line) => lines.push(JSON.parse(line).message), Date.now);
    log('stopped', { reason: 'drained' });
    log('signing keys could not be fetched', {});
    log('unforeseen error', {});
    assert.deepEqual(lines, expected);
  });
}

test('writes nothing at level silent', () => {
  assert.deepEqual(linesOf(failure('x'), true, 'silent'), []);
});

test('has at most 1,000 characters of a message, in any language and of several lines [§28]', () => {
  const message = `über\n${'x'.repeat(2_000)}`;
  assert.equal(toldOf(failure(message)).errorMessage, message.slice(0, 1_000));
  assert.equal(toldOf(failure('x', { name: message })).errorName, message.slice(0, 1_000));
});

test('replaces what a terminal obeys and JSON does not escape', () => {
  assert.equal(toldOf(failure('a\x7f\x80\x9b\x9f\xa0b')).errorMessage, 'a????\xa0b');
  // Cut in half, it would break parsers of JSON (RFC 8259 §8.2).
  assert.equal(toldOf(failure(`${'x'.repeat(999)}\u{1f600}`)).errorMessage, `${'x'.repeat(999)}?`);
});

test('has a thrown value that is text, and nothing of one that is neither text nor an error', () => {
  assert.deepEqual(toldOf('broken'), { errorMessage: 'broken' });
  assert.deepEqual(toldOf(5), { errorMessage: '5' });
  assert.equal(toldOf(failure('x', { code: true })).errorCode, 'true');
  for (const nothing of [undefined, null, {}]) assert.deepEqual(toldOf(nothing), {});
  assert.equal(toldOf(failure('x', { name: { secret: 1 } })).errorName, undefined);
  assert.deepEqual(toldOf(failure('x', { code: { secret: 1 } })), {
    errorName: 'RangeError',
    errorMessage: 'x',
  });
});

test('survives an error that does not let itself be read', () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const throwing = Object.defineProperty(new Error(), 'message', { get: () => assert.fail() });
  const unprintable = failure('x', { message: { toString: () => assert.fail() } });
  for (const error of [proxy, throwing]) assert.deepEqual(toldOf(error), {});
  assert.deepEqual(toldOf(unprintable), { errorName: 'RangeError' });
});

test('writes each line of a turn, and none of further ones while a mebibyte of them is unwritten [H3]', async (t) => {
  const logged = captureLog(t);
  const { log } = Part.contentOf(jsonLog());
  const count = 20_000;
  for (let index = 0; index < count; index += 1) log('replay store lost', {});
  const lines = (await logged()).filter(({ message }) => message === 'replay store lost');
  assert.ok(2 < lines.length && lines.length < count, `${lines.length} lines`);
});

test('writes nothing while standard output holds more than a mebibyte that nobody reads [H3]', async (t) => {
  const logged = captureLog(t);
  const { stdout } = process;
  Object.defineProperty(stdout, 'writableLength', { value: 2 ** 20 + 1, configurable: true });
  const { log } = Part.contentOf(jsonLog());
  log('replay store lost', {});
  Reflect.deleteProperty(stdout, 'writableLength');
  log('revocation store lost', {});
  const told = (await logged()).map(({ message, lines }) => [message, lines]);
  assert.deepEqual(told, [
    ['log lines dropped', 1],
    ['revocation store lost', undefined],
  ]);
});

test('listens once for errors of standard output, however many logs and copies of the module there are', async () => {
  jsonLog();
  const before = process.stdout.listenerCount('error');
  const url = import.meta.resolve('../../src/options/log.ts');
  const copy: { jsonLog: typeof jsonLog } = await import(`${url}?copy`);
  assert.notEqual(copy.jsonLog, jsonLog);
  for (let count = 0; count < 20; count += 1) {
    copy.jsonLog();
    jsonLog();
  }
  assert.ok(before > 0);
  assert.equal(process.stdout.listenerCount('error'), before);
});

test('listens for the end of the process only while lines are unwritten, so that Node warns of no leak', async (t) => {
  const logged = captureLog(t);
  const { log } = Part.contentOf(jsonLog());
  const before = process.listenerCount('exit');
  for (let turn = 0; turn < 3; turn += 1) {
    log('replay store lost', {});
    log('replay store lost', {});
    assert.equal(process.listenerCount('exit'), before + 1);
    await logged();
    assert.equal(process.listenerCount('exit'), before);
  }
});

test('has level info without options, serves several owners, and refuses options of another type [§11]', () => {
  const log = jsonLog();
  assert.equal(Part.contentOf(log).level, 'info');
  Part.use({ log });
  assert.equal(Part.isTaken(log), false);
  for (const name of ['level', 'access', 'errorMessages']) {
    const message = new RegExp(`^log: ${name}: must be `);
    assert.throws(() => jsonLog({ [name]: 'x' }), { name: 'TypeError', message });
  }
});

test('the message of an error is in the line of a 500, and never in the response [§28]', async (t) => {
  const logged = captureLog(t);

  const throwing = () => {
    throw failure('no such table', { code: '42P01' });
  };

  const options: ServiceOptions = { ...issuer.options, host: '127.0.0.1', port: 0, errorDetail: true };
  const log = jsonLog({ level: 'error', errorMessages: true });
  const service = createService({ routes: [get('/a', open, throwing)] }, { ...options, log });
  t.after(() => service.stop());
  const response = await fetch(`${await service.listen()}/a`, { headers: { connection: 'close' } });
  const text = JSON.stringify([...response.headers]) + (await response.text());
  assert.equal(response.status, 500);
  assert.doesNotMatch(text, /table|42P01|RangeError/);
  // Gates of other files may write theirs meanwhile.
  const line = (await logged()).find(({ message }) => message === 'request failed');
  const { errorName, errorCode, errorMessage, frames } = line ?? {};
  assert.deepEqual([errorName, errorCode, errorMessage], ['RangeError', '42P01', 'no such table']);
  assert.match(frames.join(), /log\.test\.[jt]s/);
});

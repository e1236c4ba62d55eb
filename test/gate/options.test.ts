/* The options of a gate that do not fit each other, and what becomes of those that may be a part or a function. */
import { strict as assert } from 'node:assert';
import { describe, test } from 'node:test';
import { clientCertificates } from '../../src/certificates.ts';
import { isSameOrigin, readGateOptions, type GateOptions } from '../../src/gate/options.ts';
import { jsonLog } from '../../src/log.ts';
import { redisReplayStore } from '../../src/redis.ts';
import { resourceMetadata } from '../../src/resource-metadata.ts';
import { TestClock } from '../support/clock.ts';

const GIVEN = { domain: 'idp.test', audience: 'https://api.test' };

const read = (more: Partial<GateOptions>) => readGateOptions({ ...GIVEN, ...more });

const MODES = ['DISABLED', 'ALLOWED', 'REQUIRED'] as const;

describe('the DPoP mode', () => {
  const stores = [() => redisReplayStore('redis://store.test'), () => () => true];

  for (const make of stores) {
    test('leaves a replay store without use only if it is DISABLED', () => {
      for (const dpopMode of MODES.slice(1)) assert.ok(read({ replayStore: make(), dpopMode }).replayStore);
      assert.throws(() => read({ replayStore: make(), dpopMode: 'DISABLED' }), {
        name: 'TypeError',
        message: 'replayStore: has no effect while the DPoP mode is DISABLED; remove it, or set another mode',
      });
    });
  }

  test('leaves a required certificate without use only if it is REQUIRED [RFC 8705 §3]', () => {
    const certificates = (required: boolean) => clientCertificates({ source: 'tls', required });
    for (const dpopMode of MODES) {
      assert.ok(read({ clientCertificates: certificates(false), dpopMode }).clientCertificates);
      if (dpopMode === 'REQUIRED') continue;
      assert.ok(read({ clientCertificates: certificates(true), dpopMode }).clientCertificates);
    }

    const given = { clientCertificates: certificates(true), dpopMode: 'REQUIRED' as const };
    assert.throws(() => read(given), {
      name: 'TypeError',
      message:
        'clientCertificates: required: has no effect while the DPoP mode is REQUIRED, which accepts no Bearer token; remove it',
    });
  });
});

test('metadata need the origin of the public URL, whatever its path [RFC 9728 §3.3]', () => {
  const metadata = () => resourceMetadata({ url: 'https://api.test/mcp' });
  for (const publicUrl of [undefined, 'https://api.test', 'https://api.test/v1/']) {
    assert.ok(read({ metadata: metadata(), publicUrl }).metadata);
  }

  assert.throws(() => read({ metadata: metadata(), publicUrl: 'https://api.test:8443' }), {
    name: 'TypeError',
    message:
      'metadata: url: must be https:// (http:// on loopback), with the origin of the public URL, no "=", no "/" after a path',
  });
  assert.deepEqual(
    [isSameOrigin('https://a.test/x', undefined), isSameOrigin('https://a.test/x', 'https://b.test')],
    [true, false],
  );
});

describe('a log', () => {
  test('of the user is a function that gets level, message and fields, and no line for each request', () => {
    const lines: unknown[] = [];
    const { log, level, isAccessLogged } = read({ log: (...line) => lines.push(line) }).log!;
    log('signing keys loaded', { keys: 2 });
    assert.deepEqual(lines, [['info', 'signing keys loaded', { keys: 2 }]]);
    assert.deepEqual([level, isAccessLogged], ['debug', false]);
  });

  for (const [how, fail] of [
    ['throws', () => assert.fail('in the log')],
    ['rejects', async () => assert.fail('in the log')],
  ] as const) {
    test(`of the user that ${how} is ignored`, async () => {
      read({ log: fail }).log!.log('signing keys loaded', {});
      // A rejection that nobody handles would fail the test.
      await new Promise(setImmediate);
    });
  }

  test('that is a part has its own level, and without one there is none', () => {
    const { level, isAccessLogged } = read({ log: jsonLog({ level: 'warn', access: true }) }).log!;
    assert.deepEqual([level, isAccessLogged], ['warn', true]);
    assert.equal(read({}).log, undefined);
  });
});

describe('a replay store', () => {
  test('of the user is a function that says whether a key is new', async () => {
    const keys: string[] = [];
    const create = read({
      replayStore: (key) => {
        const isNew = !keys.includes(key);
        keys.push(key);
        return isNew;
      },
    }).replayStore!;

    const store = create(new TestClock(), () => {});
    const verdicts = [await store.record('t', 'j', 300, 0), await store.record('t', 'j', 300, 0)];
    assert.deepEqual([verdicts, keys.length], [['new', 'seen'], 2]);
  });

  test('of this process is left to the checks', () => assert.equal(read({}).replayStore, undefined));
});

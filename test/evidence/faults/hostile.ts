/* Hostile clients: each is refused, or timed out by a stated limit, and leaves nothing behind (G8). */
import { strict as assert } from 'node:assert';
import { describe, test } from 'node:test';
import { exchange, openWire, type Wire } from '../../support/client.ts';
import { figures, type Row } from '../../support/figures.ts';
import { get, GOOD, HOST, post } from '../../support/listener.ts';
import { statusesIn } from '../../support/raw-responses.ts';
import { descriptors, residentMebibytes, until } from '../../support/watch.ts';
import { SHAPES } from '../../faults/shapes.ts';
import {
  assertUntroubled,
  openFixture,
  startGoodLoad,
  warnings,
  type ProcessFixture,
} from '../../faults/process-fixture.ts';

const rows = figures('hostile clients');
/** In MiB. */
const SLACK = 64;

/** Keeps sending bytes, one every `millis`, until the connection ends. */
function drip(wire: Wire, byte: string, millis: number): void {
  const timer = setInterval(() => wire.send(byte), millis);
  wire.socket.once('close', () => clearInterval(timer));
}

/** Keeps sending chunks as fast as they are read. */
function pour(wire: Wire): void {
  const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;

  const more = () => {
    if (wire.socket.writable) wire.socket.write(chunk, more);
  };

  more();
}

const CHUNKED = 'Transfer-Encoding: chunked\r\n';

interface Attack {
  readonly name: string;
  readonly wires: number;
  begin(wire: Wire): void;
  /** Of the last response. */
  readonly status: number;
  /** The client may not see the response, since it does not stop sending. */
  readonly isDeaf?: boolean;
  /** The service ends it within this time; `undefined` when the client does. */
  readonly limitSeconds: number | undefined;
  /** It does not end it before this time. */
  readonly leastSeconds?: number;
}

const ATTACKS: readonly Attack[] = [
  {
    name: 'slow header',
    wires: 50,
    status: 408,
    limitSeconds: 20,
    begin: (wire) => {
      wire.send(`GET /healthz HTTP/1.1\r\n${HOST}X: `);
      drip(wire, 'x', 500);
    },
  },
  {
    name: 'half a header',
    wires: 50,
    begin: (wire) => wire.send('GET /healthz HT'),
    status: 408,
    limitSeconds: 20,
  },
  {
    name: 'slow body',
    wires: 50,
    status: 405,
    limitSeconds: 10,
    begin: (wire) => {
      wire.send(post('Content-Length: 1000\r\n'));
      drip(wire, 'x', 200);
    },
  },
  {
    name: 'endless chunks on GET',
    wires: 20,
    status: 200,
    limitSeconds: 10,
    begin: (wire) => {
      wire.send(get(`${HOST}${CHUNKED}`));
      drip(wire, `1000\r\n${'x'.repeat(0x1000)}\r\n`, 50);
    },
  },
  {
    name: 'endless chunks, fast',
    wires: 20,
    status: 200,
    isDeaf: true,
    limitSeconds: 10,
    begin: (wire) => {
      wire.send(get(`${HOST}${CHUNKED}`));
      pour(wire);
    },
  },
  { name: 'never a byte', wires: 2_000, begin: () => {}, status: 408, limitSeconds: 25 },
  {
    name: 'empty lines after a response',
    wires: 50,
    status: 200,
    leastSeconds: 72,
    limitSeconds: 76,
    begin: (wire) => {
      wire.send(GOOD);
      drip(wire, '\r\n', 5_000);
    },
  },
  {
    name: 'reads nothing and sends empty lines',
    wires: 10,
    status: 200,
    isDeaf: true,
    leastSeconds: 90,
    limitSeconds: 100,
    begin: (wire) => {
      wire.socket.pause();
      wire.send(GOOD.repeat(60_000));
      drip(wire, '\r\n', 1_000);
    },
  },
  {
    name: 'idle after a response',
    wires: 2_000,
    begin: (wire) => wire.send(GOOD),
    status: 200,
    limitSeconds: undefined,
  },
];

async function openWires(port: number, count: number): Promise<Wire[]> {
  const wires: Wire[] = [];
  while (wires.length < count) {
    wires.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(100, count - wires.length) }, () => openWire(port)),
      )),
    );
  }
  return wires;
}

/**
 * Waits until the attack ends, or ends it once every connection has its response. Resolves with the received
 * bytes.
 */
async function endOf({ limitSeconds }: Attack, wires: readonly Wire[]): Promise<string[]> {
  const isResponseed = (text: string) => text.endsWith('}');
  const received = await Promise.all(
    wires.map((wire) => (limitSeconds === undefined ? wire.until(isResponseed) : wire.untilClosed())),
  );
  for (const wire of wires) wire.destroy();
  return received;
}

/**
 * Whether to attack twice: if the attack is quick, or fills memory. Requests sent ahead make V8 keep more
 * than any bound.
 */
const fillsMemory = ({ limitSeconds = 0, isDeaf = false }: Attack) => limitSeconds <= 10 || isDeaf;

/** Attacks twice if the first attack fills what V8 keeps for good. */
async function withGoodLoad(
  fixture: ProcessFixture,
  name: string,
  isRepeated: boolean,
  attack: () => Promise<Row>,
): Promise<void> {
  const { pid } = fixture;
  const load = startGoodLoad(fixture);
  await until('the load is running', () => load.tally.answered > 100, 10);
  const calm = descriptors(pid);
  if (isRepeated) await attack();
  await until('the descriptors are back', () => descriptors(pid) <= calm + 2, 5);
  const before = descriptors(pid);
  const memory = residentMebibytes(pid);
  const found = await attack();
  await until('the descriptors are back', () => descriptors(pid) <= before + 2, 5);
  const tally = await load.stop();
  rows.push({
    attack: name,
    ...found,
    'good beside': tally.answered,
    'good refused': tally.countExcept('valid 200'),
    'good p99 ms': tally.latencies.percentile(0.99),
    'descriptors before': before,
    after: descriptors(pid),
    'MiB before': memory,
    'MiB after': residentMebibytes(pid),
  });
  assertUntroubled(tally);
  const more = residentMebibytes(pid) - memory;
  assert.ok(more < SLACK, `${more} MiB more`);
  assert.deepEqual(warnings(fixture.service), []);
}

describe('the service beside hostile clients', { timeout: 400_000 }, () => {
  for (const attack of ATTACKS) {
    test(`ends them by its limits and serves the others: ${attack.name}`, async (t) => {
      const fixture = await openFixture(t);
      await withGoodLoad(fixture, attack.name, fillsMemory(attack), async () => {
        const start = performance.now();
        const wires = await openWires(fixture.service.port, attack.wires);
        for (const wire of wires) attack.begin(wire);
        const most = descriptors(fixture.pid);
        const received = await endOf(attack, wires);
        const seconds = (performance.now() - start) / 1000;
        const heard = received.filter((text) => !attack.isDeaf || text !== '');
        assert.deepEqual(
          heard.filter((text) => statusesIn(text).at(-1) !== attack.status),
          [],
        );
        assert.ok(
          attack.limitSeconds === undefined || seconds < attack.limitSeconds,
          `ended after ${seconds} s`,
        );
        assert.ok(seconds >= (attack.leastSeconds ?? 0), `ended after ${seconds} s`);
        return {
          clients: attack.wires,
          response: attack.status,
          heard: heard.length,
          'ended after s': seconds,
          'most descriptors': most,
        };
      });
    });
  }

  test('refuses each of the malformed requests in test/faults/shapes.ts a hundred times', async (t) => {
    const fixture = await openFixture(t);
    await withGoodLoad(fixture, 'shapes', true, async () => {
      let clients = 0;
      for (const [name, { bytes, status }] of Object.entries(SHAPES)) {
        const sent = Buffer.from(bytes, 'latin1');
        const received = await Promise.all(
          Array.from({ length: 100 }, () => exchange(fixture.service.port, sent)),
        );
        clients += received.length;
        // One response, so that nothing hidden in the request was answered too.
        assert.deepEqual(
          new Set(received.map((text) => statusesIn(text).join())),
          new Set([String(status)]),
          name,
        );
      }
      return { clients, response: `${Object.keys(SHAPES).length} kinds` };
    });
  });
});

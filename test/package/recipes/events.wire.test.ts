/* The recipe for events: a client that comes back by itself, with a fresh token, and misses nothing. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startRecipe, type Recipe } from './run-recipe.ts';

interface StreamEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string;
}

interface Options {
  readonly getToken: (about: { isRefused: boolean }) => string | Promise<string>;
  readonly signal?: AbortSignal;
  readonly lastEventId?: string;
}

type ReadEvents = (url: string, options: Options) => AsyncGenerator<StreamEvent>;

const load = (name: string) => import(name);

describe('the recipe events, and its client', { timeout: 60_000 }, () => {
  let recipe: Recipe;
  let readEvents: ReadEvents;

  before(async () => {
    recipe = await startRecipe('events', { EVENTS_KEPT: '20' });
    ({ readEvents } = await load('./event-client.mjs'));
  });

  after(() => recipe.stop());

  const tokenOf = (sub: string, claims = {}) =>
    recipe.provider.issue({ sub, scope: 'read:orders write:orders', ...claims });

  const order = (sub: string, item: unknown) =>
    fetch(`${recipe.origin}/api/orders`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${tokenOf(sub)}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ item }),
    });

  const open = (sub: string, lastEventId?: string) =>
    fetch(`${recipe.origin}/api/orders/events`, {
      headers: {
        Authorization: `Bearer ${tokenOf(sub)}`,
        ...(lastEventId !== undefined && { 'Last-Event-ID': lastEventId }),
      },
    });

  const read = (sub: string, more: Partial<Options> = {}) =>
    readEvents(`${recipe.origin}/api/orders/events`, { getToken: () => tokenOf(sub), ...more });

  /** Ends the stream with the last of them. */
  async function take(
    events: AsyncGenerator<StreamEvent>,
    count: number,
    onOpen: () => Promise<unknown> = async () => {},
  ) {
    const taken: StreamEvent[] = [];
    let wasOpen = false;
    for await (const event of events) {
      if (event.event !== 'open') taken.push(event);
      else if (!wasOpen) await onOpen();
      wasOpen ||= event.event === 'open';
      if (taken.length === count) break;
    }
    return taken;
  }

  /** The first one, whatever it is. */
  async function first(sub: string) {
    const stream = read(sub);
    const { value } = await stream.next();
    await stream.return(undefined);
    return value as StreamEvent;
  }

  const itemsOf = (events: readonly StreamEvent[]) => events.map(({ data }) => JSON.parse(data).item);

  test('a client that reconnects gets what it has missed, and nothing of another caller', async () => {
    await order('ada', 'tea');
    const [event] = await take(read('ada', { lastEventId: '0' }), 1);
    assert.deepEqual(event, { event: 'order', data: '{"item":"tea"}', id: '1' });
    await order('eve', 'secret');
    await order('ada', 'milk\n\ndata: forged');
    const later = await take(read('ada', { lastEventId: event.id }), 1);
    assert.deepEqual(itemsOf(later), ['milk\n\ndata: forged']);
  });

  test('a client reconnects with a fresh token when its stream ends with the old one', async () => {
    let tokens = 0;
    let onSecond = () => {};
    const second = new Promise<void>((resolve) => {
      onSecond = resolve;
    });

    const getToken = () => {
      tokens += 1;
      if (tokens === 2) onSecond();
      const exp = Math.floor(Date.now() / 1000) + (tokens === 1 ? 1 : 300);
      return tokenOf('bob', { exp });
    };

    let onOpened = () => {};
    const opened = new Promise<void>((resolve) => {
      onOpened = resolve;
    });

    const events = take(read('bob', { getToken }), 2, async () => {
      await order('bob', 'first');
      onOpened();
    });
    // Before it is open, the client is nowhere: its first token may have ended too soon.
    await Promise.all([opened, second]);
    await order('bob', 'with the second token');
    assert.deepEqual(itemsOf(await events), ['first', 'with the second token']);
    assert.equal(tokens, 2);
  });

  test('a client that reconnects before the first event misses nothing', async () => {
    const { event, id } = await first('dan');
    await order('dan', 'tea');
    assert.deepEqual([event, itemsOf(await take(read('dan', { lastEventId: id }), 1))], ['open', ['tea']]);
  });

  test('a client asks once for another token when its first one is refused', async () => {
    await order('cid', 'tea');
    const asked: boolean[] = [];

    const getToken = ({ isRefused }: { isRefused: boolean }) => {
      asked.push(isRefused);
      return isRefused ? tokenOf('cid') : 'stale';
    };

    const events = await take(read('cid', { getToken, lastEventId: '0' }), 1);
    assert.deepEqual([itemsOf(events), asked], [['tea'], [false, true]]);
    await assert.rejects(read('cid', { getToken: () => 'stale' }).next(), {
      name: 'EventStreamError',
      status: 401,
    });
  });

  test('a client does not reconnect when it may not read', async () => {
    let tokens = 0;

    const getToken = () => {
      tokens += 1;
      return tokenOf('ada', { scope: 'write:orders' });
    };

    await assert.rejects(read('ada', { getToken }).next(), { name: 'EventStreamError', status: 403 });
    assert.equal(tokens, 1);
  });

  test('refuses a Last-Event-ID that is no event, and an order without item', async () => {
    for (const id of ['-1', 'x', '1.5', '1'.repeat(16)]) {
      assert.equal((await open('ada', id)).status, 400, id);
    }
    assert.equal((await order('ada', 7)).status, 422);
    assert.equal((await fetch(`${recipe.origin}/api/orders/events`)).status, 401);
  });

  test('tells a client that knows more than the server, or has missed too much, to begin again', async () => {
    const [reset] = await take(read('ada', { lastEventId: '999999' }), 1);
    assert.equal(reset?.event, 'reset');
    for (let sent = 0; sent <= 20; sent += 1) await order('ada', 'tea');
    const [missed] = await take(read('ada', { lastEventId: '1' }), 1);
    assert.equal(missed?.event, 'reset');
    const [next] = await take(read('ada', { lastEventId: String(Number(missed?.id) - 1) }), 1);
    assert.deepEqual([next?.event, next?.id], ['order', missed?.id]);
  });

  test('ends its streams properly when the service stops', async () => {
    const response = await open('ada');
    const text = response.text();
    recipe.service.child.kill('SIGTERM');
    assert.match(await text, /^retry: 1000\n\nid: \d+\nevent: open\n/);
    assert.equal(await recipe.service.exited, 0);
  });
});

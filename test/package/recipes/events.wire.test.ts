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

  /** So many events after this one. */
  const later = (id: string, count: number) => id.replace(/\d+$/, (at) => String(Number(at) + count));

  const itemsOf = (events: readonly StreamEvent[]) => events.map(({ data }) => JSON.parse(data).item);

  test('a client that reconnects gets what it has missed, and nothing of another caller', async () => {
    const { id: lastEventId } = await first('ada');
    await order('ada', 'tea');
    const [event] = await take(read('ada', { lastEventId }), 1);
    assert.deepEqual(event, { event: 'order', data: '{"item":"tea"}', id: later(lastEventId, 1) });
    await order('eve', 'secret');
    await order('ada', 'milk\n\ndata: forged');
    const missed = await take(read('ada', { lastEventId: event.id }), 1);
    assert.deepEqual(itemsOf(missed), ['milk\n\ndata: forged']);
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
    const { id: lastEventId } = await first('cid');
    await order('cid', 'tea');
    const asked: boolean[] = [];

    const getToken = ({ isRefused }: { isRefused: boolean }) => {
      asked.push(isRefused);
      return isRefused ? tokenOf('cid') : 'stale';
    };

    const events = await take(read('cid', { getToken, lastEventId }), 1);
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

  test('refuses an order without item, and a client without token', async () => {
    assert.equal((await order('ada', 7)).status, 422);
    assert.equal((await fetch(`${recipe.origin}/api/orders/events`)).status, 401);
  });

  test('tells a client that knows more than the server, or has missed too much, to begin again', async () => {
    const { id } = await first('ada');
    for (const lastEventId of [later(id, 1), later(id, -999), '0', '1', 'x', `${later(id, 0)}.5`]) {
      const [reset] = await take(read('ada', { lastEventId }), 1);
      assert.deepEqual([reset?.event, reset?.id], ['reset', id], lastEventId);
    }
    for (let sent = 0; sent <= 20; sent += 1) await order('ada', 'tea');
    const [missed] = await take(read('ada', { lastEventId: id }), 1);
    assert.equal(missed?.event, 'reset');
    const [next] = await take(read('ada', { lastEventId: later(missed!.id, -1) }), 1);
    assert.deepEqual([next?.event, next?.id], ['order', missed?.id]);
  });

  test('tells a client to begin again that comes from another process, however many events this one has', async (t) => {
    const other = await startRecipe('events');
    t.after(() => other.stop());
    const headers = { 'Content-Type': 'application/json' };
    for (let sent = 0; sent < 3; sent += 1) {
      await other.send('POST', '/api/orders', 'write:orders', '{"item":"tea"}', headers);
    }

    const url = `${other.origin}/api/orders/events`;
    const getToken = () => other.provider.issue({ scope: 'read:orders' });
    const { id } = await first('ada');
    const begun = readEvents(url, { getToken, lastEventId: id.replace(/\d+$/, '2') });
    assert.equal((await take(begun, 1))[0]?.event, 'reset');
  });

  test('ends its streams properly when the service stops', async () => {
    const response = await open('ada');
    const text = response.text();
    recipe.service.child.kill('SIGTERM');
    assert.match(await text, /^retry: 1000\n\nid: [\da-f-]+\nevent: open\n/);
    assert.equal(await recipe.service.exited, 0);
  });
});

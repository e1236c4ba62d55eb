/* Other clients of the recipe for events: packages, and its own client in a browser. Each comes back with a fresh
   token when the stream has ended with the old one. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fetchEventSource } from '@microsoft/fetch-event-source';
import { EventSource } from 'eventsource';
import { browserCommand } from '../clients/browser.ts';
import { startBrowser } from '../page/chromium.ts';
import { fileOf, startRecipe, type Recipe } from '../../package/recipes/run-recipe.ts';
import { serve } from '../../support/serve.ts';

const FIRST_SECONDS = 2;

/** Tells of the second token. */
class Tokens {
  readonly #recipe: Recipe;
  #count = 0;
  #onSecond = () => {};
  readonly second = new Promise<void>((resolve) => {
    this.#onSecond = resolve;
  });

  constructor(recipe: Recipe) {
    this.#recipe = recipe;
  }

  next() {
    this.#count += 1;
    if (this.#count === 2) this.#onSecond();
    return tokenOf(this.#recipe, this.#count === 1 ? FIRST_SECONDS : 300);
  }
}

const tokenOf = ({ provider }: Recipe, seconds: number) =>
  provider.issue({ scope: 'read:orders write:orders', exp: Math.floor(Date.now() / 1000) + seconds });

const order = async ({ send }: Recipe, item: string) => {
  const type = { 'Content-Type': 'application/json' };
  const { status } = await send('POST', '/api/orders', 'write:orders', JSON.stringify({ item }), type);
  assert.equal(status, 202);
};

type Start = (url: string, tokens: Tokens, onItem: (item: string) => void) => () => void;

/** Asks its `fetch` for each attempt. */
const withEventSource: Start = (url, tokens, onItem) => {
  const source = new EventSource(url, {
    fetch: (input, init) =>
      fetch(input, { ...init, headers: { ...init.headers, Authorization: `Bearer ${tokens.next()}` } }),
  });
  source.addEventListener('order', ({ data }) => onItem(JSON.parse(data).item));
  return () => source.close();
};

/** Is for browsers, and comes back at a proper end only if `onclose` throws. */
const withFetchEventSource: Start = (url, tokens, onItem) => {
  const controller = new AbortController();
  const document = { addEventListener() {}, removeEventListener() {} };
  Object.assign(globalThis, { window: globalThis, document });
  void fetchEventSource(url, {
    signal: controller.signal,
    openWhenHidden: true,
    fetch: (input, init) =>
      fetch(input, {
        ...init,
        headers: { ...Object(init?.headers), Authorization: `Bearer ${tokens.next()}` },
      }),
    onclose() {
      throw new Error('the stream has ended');
    },
    onmessage({ event, data }) {
      if (event === 'order') onItem(JSON.parse(data).item);
    },
  });
  return () => controller.abort();
};

async function tryOut(recipe: Recipe, name: string, start: Start) {
  const items: string[] = [];
  let onItem = () => {};
  const item = new Promise<void>((resolve) => {
    onItem = resolve;
  });

  const tokens = new Tokens(recipe);
  const stop = start(`${recipe.origin}/api/orders/events`, tokens, (one) => {
    items.push(one);
    onItem();
  });
  await tokens.second;
  await order(recipe, name);
  await item;
  stop();
  assert.deepEqual(items, [name]);
  console.log(`events: ${name} comes back with a fresh token`);
}

const PAGE = '<!doctype html><title>events</title>';

/** What a page of another origin does with the client. It orders something when it is asked for its last token. */
const walkOf = (url: string, tokens: readonly string[], lastEventId: string) => `(async () => {
  const { readEvents } = await import('/event-client.mjs');
  const tokens = ${JSON.stringify(tokens)};
  async function order(token) {
    const headers = { Authorization: 'Bearer ' + token, 'Content-Type': 'application/json' };
    await fetch('${url}', { method: 'POST', headers, body: '{"item":"last"}' });
  }
  async function getToken() {
    const token = tokens.shift();
    if (tokens.length === 0) await order(token);
    return token;
  }
  const items = [];
  for await (const { event, data } of readEvents('${url}/events', { getToken, lastEventId: '${lastEventId}' })) {
    if (event === 'order') items.push(JSON.parse(data).item);
    if (items.at(-1) === 'last') return items;
  }
})()`;

/** As the event `open` tells it. */
async function lastIdOf({ send }: Recipe) {
  const { body } = await send('GET', '/api/orders/events', 'read:orders');
  let text = '';
  for await (const part of body!.pipeThrough(new TextDecoderStream())) {
    text += part;
    const [, id] = /^id: (.+)$/m.exec(text) ?? [];
    if (id !== undefined) return id;
  }
  throw new Error('the stream has no id');
}

async function tryBrowser(command: string) {
  const client = readFileSync(fileOf('event-client'));
  const page = await serve(
    createServer(({ url }, response) => {
      const isClient = url === '/event-client.mjs';
      response.setHeader('Content-Type', isClient ? 'text/javascript' : 'text/html');
      response.end(isClient ? client : PAGE);
    }),
  );
  const origin = `http://127.0.0.1:${page.port}`;
  const recipe = await startRecipe('events', {
    CORS_ALLOWED_ORIGINS: origin,
    CORS_ALLOWED_HEADERS: 'Last-Event-ID',
    CORS_EXPOSED_HEADERS: 'Retry-After',
  });
  const browser = await startBrowser(command);
  try {
    const lastEventId = await lastIdOf(recipe);
    await order(recipe, 'first');
    await browser.tab.send('Page.navigate', { url: origin });
    const tokens = ['refused', tokenOf(recipe, FIRST_SECONDS), tokenOf(recipe, 300)];
    const items = await browser.tab.evaluate(walkOf(`${recipe.origin}/api/orders`, tokens, lastEventId));
    assert.deepEqual(items, ['first', 'last']);
    console.log(
      'events: the own client comes back with a fresh token in Chromium, from a page of another origin',
    );
  } finally {
    await browser.stop();
    await recipe.stop();
    await page.stop();
  }
}

export async function tryEventClients() {
  const recipe = await startRecipe('events');
  await tryOut(recipe, 'eventsource', withEventSource);
  await tryOut(recipe, '@microsoft/fetch-event-source', withFetchEventSource);
  await recipe.stop();
  const command = browserCommand();
  if (command !== undefined) return tryBrowser(command);

  console.log('events: Chromium is not installed: the own client was not tried in it');
}

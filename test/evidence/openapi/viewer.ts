/* Swagger UI with a document, in Chromium: which operations it shows, and what it complains of. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startBrowser } from '../page/chromium.ts';

const FILES = new URL('../node_modules/swagger-ui-dist/', import.meta.url);

/** It asks no server but this one. */
const PAGE = `<!doctype html><link rel="icon" href="data:,"><link rel="stylesheet" href="/swagger-ui.css">
<div id="ui"></div>
<script>
  const errors = [];
  for (const name of ['error', 'warn']) console[name] = (...words) => errors.push(words.map(String).join(' '));
</script>
<script src="/swagger-ui-bundle.js"></script>
<script>
  SwaggerUIBundle({
    url: '/openapi.json',
    dom_id: '#ui',
    docExpansion: 'full',
    validatorUrl: null,
    onComplete: () => (document.documentElement.dataset.ready = 'true'),
  });
</script>`;

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css',
  js: 'text/javascript',
  json: 'application/json',
};

/** Once all operations are open, and it has had a second to resolve what they refer to. */
const SEEN = `new Promise((resolve) => {
  const textsOf = (selector) => [...document.querySelectorAll(selector)].map((each) => each.innerText.trim());
  const blocksNow = () => [...document.querySelectorAll('.opblock')];
  const look = () => {
    const blocks = blocksNow();
    const isReady = document.documentElement?.dataset.ready === 'true' && blocks.every((each) => each.matches('.is-open'));
    setTimeout(isReady && blocks.length > 0 ? tell : look, isReady ? 1_000 : 50);
  };
  const tell = () => {
    const operations = blocksNow().map((each) => [
      each.querySelector('.opblock-summary-method').innerText,
      each.querySelector('.opblock-summary-path').dataset.path,
    ].join(' '));
    resolve({ operations, errors: [...errors, ...textsOf('.errors-wrapper')] });
  };
  look();
})`;

const metadataOf = (issuer: string) =>
  JSON.stringify({
    issuer,
    authorization_endpoint: `${issuer}authorize`,
    token_endpoint: `${issuer}token`,
    grant_types_supported: ['authorization_code'],
    scopes_supported: ['openid'],
  });

export interface Seen {
  readonly operations: readonly string[];
  readonly errors: readonly string[];
}

/** `command` is that of the browser. This server stands in for the issuer, whose metadata Swagger UI reads. */
export async function openInViewer(document: object, issuer: string, command: string): Promise<Seen> {
  const server = createServer(({ url = '', headers }, response) => {
    const name = url.slice(1);
    const type = TYPES[name.split('.').pop() ?? ''];
    response.setHeader('Content-Type', type ?? 'text/html; charset=utf-8');
    const own = `http://${headers.host}/`;
    if (name === 'openapi.json') response.end(JSON.stringify(document).replaceAll(issuer, own));
    else if (name === '.well-known/openid-configuration') response.end(metadataOf(own));
    else response.end(type === undefined ? PAGE : readFileSync(new URL(name, FILES)));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  const browser = await startBrowser(command);
  try {
    const { port } = server.address() as AddressInfo;
    await browser.tab.send('Page.navigate', { url: `http://127.0.0.1:${port}/` });
    const seen = await browser.tab.evaluate<Seen>(SEEN);
    return { ...seen, errors: [...seen.errors, ...browser.tab.complaints] };
  } finally {
    await browser.stop();
    server.close();
    server.closeAllConnections();
  }
}

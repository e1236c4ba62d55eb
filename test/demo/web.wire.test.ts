/* The demo's page without a browser and without the service: its files, its policy, and who gets its tokens. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { after, before, test } from 'node:test';
import { startProvider, type Provider } from '../idp/provider.ts';
import { makeClients } from './clients.ts';
import { examplesOf } from './examples.ts';
import { profileA } from './profile-a.ts';
import { profileB } from './profile-b.ts';
import { FILES, startWeb, type Web } from './web.ts';

const clients = makeClients({ alice: {} });
const service = 'http://127.0.0.1:1';

let provider: Provider;
let web: Web;

before(async () => {
  provider = await startProvider({ clients, host: '127.0.0.1' });
  web = await startWeb();
  const tokens = new Map([['alice', 'a.b.c']]);
  web.show({ profile: 'B', origin: service, provider, clients, tokens, groups: profileB.groups });
});

after(async () => {
  web.stop();
  await provider.stop();
});

const readWeb = (name: string) => readFileSync(new URL(`web/${name}`, import.meta.url), 'utf8');

const scripts = readdirSync(new URL('web/', import.meta.url)).filter((name) => name.endsWith('.js'));

test("serves every file of the demo's page, and loads no others", async () => {
  const names = Object.values(FILES).map(([name]) => name);
  assert.deepEqual(names.sort(), readdirSync(new URL('web/', import.meta.url)).sort());
  for (const path of Object.keys(FILES)) assert.equal((await fetch(web.origin + path)).status, 200, path);

  const loaded = [...readWeb('index.html').matchAll(/ (?:src|href)="([^"#]+)"/g)].map(
    ([, path = '']) => path,
  );
  const imported = scripts.flatMap((name) =>
    [...readWeb(name).matchAll(/ from '\.([^']+)'/g)].map(([, path = '']) => path),
  );
  assert.ok(loaded.length >= 3 && imported.length >= 5);
  assert.deepEqual(
    [...loaded, ...imported].filter((path) => !Object.hasOwn(FILES, path)),
    [],
  );
});

test('sends a Content-Security-Policy with the page that allows nothing but its files and the service', async () => {
  const { headers } = await fetch(`${web.origin}/`);
  const policy = headers.get('content-security-policy') ?? '';
  assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; /);
  assert.ok(policy.includes(`; connect-src 'self' ${service};`));
  assert.doesNotMatch(policy, /unsafe|\*|data:/);
});

test('has no style, script or handler inside its markup, and makes no markup from text', () => {
  assert.doesNotMatch(readWeb('index.html'), /<style|<script(?! type="module" src=)|\son\w+=|style="/);
  for (const name of scripts) {
    assert.doesNotMatch(
      readWeb(name),
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b/,
      name,
    );
  }
});

test('has a label for each field of its form, and each element that a script names', () => {
  const page = readWeb('index.html');
  for (const [, id] of page.matchAll(/<(?:input|select|textarea) id="([\w-]+)"/g)) {
    assert.ok(page.includes(`<label for="${id}">`), `a label for ${id}`);
  }

  const named = scripts.flatMap((name) => [...readWeb(name).matchAll(/byId\('([\w-]+)'\)/g)]);
  assert.ok(named.length > 10);
  for (const [, id] of named) assert.ok(page.includes(` id="${id}"`), id);
});

test('has a call of its groups for each way in which its story sends the token', () => {
  const ways = [...readWeb('index.html').matchAll(/data-way="([\w-]+)"/g)].map(([, way]) => way);
  assert.deepEqual(ways, ['bearer', 'other-key', 'replay']);
  for (const { groups } of [profileA, profileB]) {
    const stolen = examplesOf(groups.filter(({ id }) => id === 'stolen'));
    for (const way of ways) assert.equal(stolen.find((call) => call.way === way)?.status, 401, way);
  }
});

test('gives its tokens to no other site', async () => {
  const { port } = new URL(web.origin);

  const statusOf = (path: string, headers: Record<string, string>, method = 'GET') =>
    new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, path, method, headers };
      request(options, ({ statusCode }) => resolve(statusCode))
        .on('error', reject)
        .end(method === 'POST' ? '{"client":"alice"}' : undefined);
    });

  assert.equal(await statusOf('/demo.json', { Host: `another.test:${port}` }), 421);
  assert.equal(await statusOf('/token', { 'Content-Type': 'text/plain' }, 'POST'), 415);
  assert.equal(await statusOf('/token', { 'Content-Type': 'application/json' }, 'POST'), 400);
  assert.equal(await statusOf('/token', {}), 405);
  assert.equal(await statusOf('/', {}, 'POST'), 405);
  assert.equal(await statusOf('/../demo.ts', {}), 404);
  const { headers } = await fetch(`${web.origin}/demo.json`, { headers: { Origin: 'https://another.test' } });
  assert.equal(headers.get('access-control-allow-origin'), null);
});

/** The words that a shell makes of the line. */
const wordsOf = (line: string) =>
  execFileSync('/bin/sh', ['-c', `curl() { printf '%s\\0' "$@"; }; ${line}`], { encoding: 'utf8' })
    .split('\0')
    .slice(0, -1);

test('copies a call as a line that a shell takes apart into the same method, fields, body and URL', async () => {
  const { curlLine } = await import(new URL('web/curl.js', import.meta.url).href);
  const headers = { Authorization: 'Bearer a.b.c', 'X-Odd': `'; false; $(false) "` };
  const body = `@file 'it''s' \\ $HOME\n`;
  const sent = { method: 'PATCH', url: 'http://127.0.0.1:1/a?b={c}&d=[1]', headers, body };
  assert.deepEqual(wordsOf(curlLine(sent)), [
    ...['-i', '-X', 'PATCH', '--globoff'],
    ...['-H', 'Authorization: Bearer a.b.c', '-H', `X-Odd: ${headers['X-Odd']}`],
    ...['--data-raw', body, sent.url],
  ]);

  const plain = { method: 'GET', url: 'http://127.0.0.1:1/a', headers: {} };
  assert.equal(curlLine(plain), 'curl -i http://127.0.0.1:1/a');
  assert.equal(curlLine({ ...plain, method: 'HEAD' }), 'curl -i --head http://127.0.0.1:1/a');
});

/* Opens the page of the demo in Chromium and uses it as a visitor does. PAGE_PICTURES names a folder for screenshots. With
   the word `pictures` it takes those of README.md instead.

   Shows: the demo page in Chromium, light and dark (`PAGE_PICTURES` sets a folder for
   screenshots).
   Takes: 20 s.
   Needs: packages, Chromium. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run, startDemo, UP, webOriginIn, type Demo } from '../../demo/terminal.ts';
import { browserCommand } from '../clients/browser.ts';
import { startBrowser, type Tab } from './chromium.ts';
import { areCurrent, takePictures } from './pictures.ts';
import { look, open, SCHEMES, textOf, until, type Scheme } from './visit.ts';

const AXE = new URL('../node_modules/axe-core/axe.min.js', import.meta.url);
const PICTURES = process.env.PAGE_PICTURES;
const HEIGHTS: Readonly<Record<number, number>> = { 1280: 800, 820: 1180, 375: 812 };
const WIDTHS = [1280, 820, 375] as const;

type Width = (typeof WIDTHS)[number];

let isGood = true;

function report(what: string, holds: boolean, shown = ''): void {
  console.log(`${holds ? 'ok  ' : 'FAIL'} ${what}${holds ? '' : `: ${shown}`}`);
  isGood &&= holds;
}

async function sendAll(tab: Tab): Promise<void> {
  await tab.evaluate(`document.getElementById('send-all').click()`);
  await until(tab, `document.getElementById('tally').textContent !== ''`);
  const tally = await textOf(tab, '#tally');
  const [, expected, all] = /^✓ (\d+) of (\d+) as expected$/.exec(tally) ?? [];
  report(`every call gives the status that it announces (${tally})`, expected === all && Number(all) > 20);
}

/** Plays the thief in each way. */
async function checkStory(tab: Tab): Promise<void> {
  const cards = await tab.evaluate<number>(`document.querySelectorAll('[data-way]').length`);
  for (let index = 1; index <= cards; index += 1) {
    const card = `[data-way]:nth-child(${index})`;
    await tab.evaluate(`document.querySelector('${card} button').click()`);
    await until(tab, `document.querySelector('${card} strong') !== null`);
    const reply = await textOf(tab, `${card} .reply`);
    const isRefused = /\b401\b[^]*✓ the thief is refused\n/.test(reply);
    report(`the thief is refused, and the page says why (${reply.replaceAll('\n', ' ')})`, isRefused, reply);
  }

  const replayed = await textOf(tab, `[data-way=replay] .reply`);
  report('the request that the thief copies is accepted', replayed.startsWith('You: 200.'), replayed);
}

/** Colour says whether a status was expected, and nothing else. */
async function checkColours(tab: Tab): Promise<void> {
  const colours = await tab.evaluate<string[]>(`[200, 401, 403, 404].map((status) => {
    const got = [...document.querySelectorAll('.got .is-expected')].find((each) => each.innerText.includes(status));
    return getComputedStyle(got).color;
  })`);
  report('every expected status has one colour, whatever it is', new Set(colours).size === 1, colours.join());
  const unexpected = await tab.evaluate<string>(`import('/view.js').then(({ verdict, byId }) => {
    const made = verdict(false, 'an unexpected status');
    byId('shown').append(made);
    return getComputedStyle(made).color;
  })`);
  report('an unexpected status has another', unexpected !== colours[0], unexpected);
}

/** Sends a call of the form. */
async function sendOwn(tab: Tab, values: Readonly<Record<string, string>>): Promise<string> {
  const all = { method: 'GET', body: '', ...values };
  const settings = Object.entries(all).map(
    ([name, value]) => `document.getElementById('${name}').value = ${JSON.stringify(value)};`,
  );
  await tab.evaluate(`document.getElementById('shown').replaceChildren(); ${settings.join(' ')}
    document.getElementById('own').dispatchEvent(new Event('change'));
    document.getElementById('send-own').click()`);
  await until(tab, `document.getElementById('shown').innerText !== ''`);
  return textOf(tab, '#shown');
}

async function checkShown(tab: Tab): Promise<void> {
  const refused = await sendOwn(tab, { path: '/api/private', as: '', way: '' });
  report('a refusal shows its status', /^401 Unauthorized\s+GET \/api\/private/.test(refused), refused);
  report('a refusal shows both challenges', /\nBearer realm=[^]*\nDPoP algs=/.test(refused), refused);
  report('a refusal shows its body', refused.includes('"error": "unauthorized"'), refused);

  const late = await sendOwn(tab, { path: '/api/private', as: 'latecomer', way: '' });
  report(
    'the page shows the claims of the token',
    /Token claims expired .* ago[^]*"exp": \d+/.test(late),
    late,
  );
  const said = await tab.evaluate<string>(`document.querySelector('#said[role=status]').textContent`);
  report(
    'a screen reader is told the status and the reason',
    said.trim() === '401 for GET /api/private. the token has expired',
    said,
  );

  const stolen = await sendOwn(tab, { path: '/api/private', as: 'visitor', way: 'other-key' });
  report('a token with the proof of another key is refused', stolen.startsWith('401'), stolen);

  const bound = await sendOwn(tab, { path: '/api/private', as: 'visitor', way: 'proof' });
  report('a proof made in the browser is accepted', bound.startsWith('200'), bound);
  report(
    'the page shows the claims of the proof',
    /Proof claims\s[^]*"htm": "GET"[^]*"ath":/.test(bound),
    bound,
  );
  report('the page shows to which key the token is bound', /"cnf": \{\s+"jkt":/.test(bound), bound);
  report('the page shows only the first and last characters of a token', !/ey[\w-]{60}/.test(bound), bound);

  const markup = await sendOwn(tab, { path: '/api/<b id="injected">', as: '', way: '' });
  const injected = await tab.evaluate<boolean>(`document.getElementById('injected') !== null`);
  report('text of a request or a response never becomes markup', !injected, markup);
}

async function checkMethods(tab: Tab): Promise<void> {
  const values = { path: '/api/private', as: 'visitor', way: 'proof' };
  const posted = await sendOwn(tab, { ...values, method: 'PATCH', body: '{"a":1}' });
  report(
    'another method gets the response of the service',
    /^405 [^]*PATCH \/api\/private/.test(posted),
    posted,
  );
  report('its body is sent as JSON', /Content-Type: application\/json\s+\{"a":1\}/.test(posted), posted);
  report('the page shows which methods there are', /\nallow: GET/.test(posted), posted);
  const head = await sendOwn(tab, { ...values, method: 'HEAD', body: 'is not sent' });
  report('HEAD has a response without a body', /^200 [^]*Body\s+\(none\)/.test(head), head);
  const isDisabled = await tab.evaluate<boolean>(`document.getElementById('body').disabled`);
  report('the field for a body cannot be used with a method that has none', isDisabled);
}

/** Copies the call that is shown, and gives the line. */
async function copyShown(tab: Tab): Promise<string> {
  await tab.evaluate(`document.getElementById('copied').textContent = '';
    navigator.clipboard.writeText = async (text) => void (window.copied = text);
    document.getElementById('copy').click()`);
  await until(tab, `document.getElementById('copied').innerText !== ''`);
  return tab.evaluate<string>('window.copied');
}

async function checkCurl(tab: Tab): Promise<void> {
  const statusOf = async (line: string) => {
    const { stdout } = await run('/bin/sh', ['-c', line]);
    return /^HTTP\/1\.1 (\d+)/.exec(stdout)?.[1] ?? stdout;
  };

  await sendOwn(tab, { path: '/api/private', as: 'visitor', way: 'proof' });
  const line = await copyShown(tab);
  report('a copied call works in a shell', (await statusOf(line)) === '200', line);
  report('its proof works once', (await statusOf(line)) === '401', line);
  await sendOwn(tab, { path: '/api/private', as: 'visitor', way: 'replay' });
  const used = await copyShown(tab);
  report('a call that replays a proof is copied with that proof', (await statusOf(used)) === '401', used);

  await tab.evaluate(`document.getElementById('copied').textContent = '';
    navigator.clipboard.writeText = () => Promise.reject(new DOMException('', 'NotAllowedError'));
    document.getElementById('copy').click()`);
  await until(tab, `document.getElementById('copied').innerText !== ''`);
  const shown = await textOf(tab, '#copied');
  report('where copying is not permitted, the page shows the line', shown.startsWith('curl -i -H'), shown);
}

interface Rectangle {
  readonly x: number;
  readonly y: number;
}

/** Uses buttons down and up the page: the one that is used stays where it is. */
async function checkStill(tab: Tab, width: Width): Promise<void> {
  const moved: string[] = [];
  for (const index of [3, 9, 5, 1, 12]) {
    const distance = await tab.evaluate<Rectangle>(`(async () => {
      const button = document.querySelectorAll('main button:not(#copy, #send-all, #send-own)')[${index}];
      button.scrollIntoView({ block: 'center', behavior: 'instant' });
      document.getElementById('said').textContent = '';
      const before = button.getBoundingClientRect();
      button.click();
      while (document.getElementById('said').textContent === '') await new Promise(requestAnimationFrame);
      await new Promise(requestAnimationFrame);
      const after = button.getBoundingClientRect();
      return { x: after.x - before.x, y: after.y - before.y };
    })()`);
    if (Math.abs(distance.x) >= 1 || Math.abs(distance.y) >= 1) {
      moved.push(`button ${index} by ${distance.x}, ${distance.y}`);
    }
  }
  report(`nothing moves under the pointer, ${width} pixels`, moved.length === 0, moved.join('; '));

  const isUnderRow = await tab.evaluate<boolean>(`
    document.querySelector('[aria-current=true]').contains(document.getElementById('response'))`);
  report(`the response is ${width > 992 ? 'beside' : 'under'} its call`, isUnderRow === width <= 992);
}

async function checkPolicy(tab: Tab, origin: string): Promise<void> {
  report(
    'the page breaks its policy nowhere and throws nothing',
    tab.complaints.length === 0,
    tab.complaints.join(),
  );
  const { headers } = await fetch(`${origin}/`);
  const policy = headers.get('content-security-policy') ?? '';
  report('its policy allows nothing by default', policy.startsWith("default-src 'none'; "), policy);
  report('its policy has no unsafe source', !/unsafe|\*|data:/.test(policy), policy);
  const isExportable = await tab.evaluate<boolean>(`import('/dpop.js').then(async ({ makeKey }) =>
    (await makeKey()).privateKey.extractable)`);
  report('the private key cannot be exported', !isExportable);
}

/** Everything that can be used is reached by the Tab key, in the order of the page, and Enter sends. */
async function checkKeyboard(tab: Tab): Promise<void> {
  const key = async (name: string, code: number, text?: string) => {
    const shape = {
      key: name,
      code: name,
      windowsVirtualKeyCode: code,
      ...(text === undefined ? {} : { text }),
    };
    await tab.send('Input.dispatchKeyEvent', { type: 'keyDown', ...shape });
    await tab.send('Input.dispatchKeyEvent', { type: 'keyUp', ...shape });
  };

  await tab.evaluate(`document.activeElement.blur(); document.getElementById('shown').replaceChildren();
    document.getElementById('method').value = 'POST';
    document.getElementById('own').dispatchEvent(new Event('change'))`);
  const controls = 'a, button, input, select, textarea, [tabindex="0"]';
  const all = await tab.evaluate<number>(`document.querySelectorAll(${JSON.stringify(controls)}).length`);
  await tab.evaluate(`window.reached = new Set();
    document.addEventListener('focusin', ({ target }) => window.reached.add(target))`);
  for (let count = 0; count < all; count += 1) await key('Tab', 9);

  const reached = await tab.evaluate<number>('window.reached.size');
  report(`the Tab key reaches all ${all} controls`, reached === all, String(reached));
  await tab.evaluate(`document.getElementById('body').focus()`);
  await key('Tab', 9);
  const focused = await tab.evaluate<string>('document.activeElement.textContent');
  report('after the last field comes the button that sends', focused === 'Send', focused);
  const ring = await tab.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle');
  report('the control with the focus has a ring', ring === 'solid', ring);
  await key('Enter', 13, '\r');
  await until(tab, `document.getElementById('shown').innerText !== ''`);
  report('the Enter key sends', true);
}

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

async function checkAccess(tab: Tab, profile: string, scheme: Scheme, width: Width): Promise<void> {
  if (PICTURES !== undefined) {
    const { cssContentSize } = await tab.send('Page.getLayoutMetrics');
    const clip = { ...(cssContentSize as object), scale: 1 };
    const { data } = await tab.send('Page.captureScreenshot', { captureBeyondViewport: true, clip });
    writeFileSync(join(PICTURES, `${profile}-${width}-${scheme}.png`), Buffer.from(String(data), 'base64'));
  }

  await tab.evaluate(readFileSync(AXE, 'utf8'));
  const violations = await tab.evaluate<Violation[]>(`axe.run().then(({ violations }) =>
    violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html, failureSummary }) => ({ html, failureSummary })) })))`);
  report(
    `axe-core finds nothing, ${scheme}, ${width} pixels`,
    violations.length === 0,
    JSON.stringify(violations, undefined, 1),
  );
  const overflow = await tab.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
  report(`nothing is wider than the window, ${scheme}, ${width} pixels`, overflow <= 0, `${overflow} pixels`);
}

async function checkPage(tab: Tab, demo: Demo, profile: string): Promise<void> {
  await demo.until(UP);
  const origin = webOriginIn(demo.output());
  await look(tab, 'light', 1280, 800);
  await open(tab, origin);
  await checkStory(tab);
  await sendAll(tab);
  await checkColours(tab);
  await checkShown(tab);
  await checkMethods(tab);
  await checkCurl(tab);
  await checkPolicy(tab, origin);
  await checkKeyboard(tab);
  for (const width of WIDTHS) {
    await look(tab, 'light', width, HEIGHTS[width]!);
    await checkStill(tab, width);
    for (const scheme of SCHEMES) {
      await look(tab, scheme, width, HEIGHTS[width]!);
      await checkAccess(tab, profile, scheme, width);
    }
  }
}

async function checkProfile(command: string, profile: string): Promise<void> {
  console.log(`profile ${profile}`);
  const demo = startDemo([profile]);
  const browser = await startBrowser(command);
  try {
    await checkPage(browser.tab, demo, profile);
  } finally {
    await browser.stop();
    demo.child.kill('SIGTERM');
    await demo.end();
  }
}

const command = browserCommand();

if (command === undefined) {
  console.log('the page of the demo: skipped, since there is no chromium (apt-get install chromium)');
} else if (process.argv.includes('pictures')) {
  await takePictures(command);
} else {
  report('the pictures of README.md show this page', areCurrent(), 'run npm run evidence page pictures');
  for (const profile of ['A', 'B']) await checkProfile(command, profile);
  process.exitCode = isGood ? 0 : 1;
}

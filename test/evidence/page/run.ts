/* Opens the page of the demo in Chromium and uses it as a visitor does. PAGE_PICTURES names a folder for screenshots.

   Shows: the page of the demo in Chromium: every call, with proofs made by WebCrypto; its
   Content-Security-Policy; use by keyboard; and axe-core in light and dark, wide and narrow (`PAGE_PICTURES` names
   a folder for screenshots).
   Takes: 15 s.
   Needs: packages, Chromium. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startDemo, UP, webOriginIn, type Demo } from '../../demo/terminal.ts';
import { browserCommand } from '../clients/browser.ts';
import { startBrowser, type Tab } from './chromium.ts';

const AXE = new URL('../node_modules/axe-core/axe.min.js', import.meta.url);
const PICTURES = process.env.PAGE_PICTURES;
const SIZES = { wide: [1360, 900], narrow: [390, 844] } as const;
const SCHEMES = ['light', 'dark'] as const;

let isGood = true;

function report(what: string, holds: boolean, shown = ''): void {
  console.log(`${holds ? 'ok  ' : 'FAIL'} ${what}${holds ? '' : `: ${shown}`}`);
  isGood &&= holds;
}

/** Evaluates the expression in the page every 20 ms until it is true. */
const until = (tab: Tab, expression: string) =>
  tab.evaluate<void>(`new Promise((resolve) => {
    const look = () => (${expression} ? resolve() : setTimeout(look, 20));
    look();
  })`);

async function open(tab: Tab, origin: string): Promise<void> {
  await tab.send('Page.navigate', { url: `${origin}/` });
  await until(tab, `document.documentElement?.dataset.ready === 'true'`);
}

const textOf = (tab: Tab, selector: string) =>
  tab.evaluate<string>(`document.querySelector(${JSON.stringify(selector)}).innerText`);

async function sendAll(tab: Tab): Promise<void> {
  await tab.evaluate(`document.getElementById('send-all').click()`);
  await until(tab, `document.getElementById('tally').textContent !== ''`);
  const tally = await textOf(tab, '#tally');
  const [, expected, all] = /^(\d+) of (\d+) as expected$/.exec(tally) ?? [];
  report(`every call gives the status that it announces (${tally})`, expected === all && Number(all) > 20);
}

/** Sends a call of the form. */
async function sendOwn(tab: Tab, values: Readonly<Record<string, string>>): Promise<string> {
  const settings = Object.entries(values).map(
    ([name, value]) => `document.getElementById('${name}').value = ${JSON.stringify(value)};`,
  );
  await tab.evaluate(`document.getElementById('shown').replaceChildren(); ${settings.join(' ')}
    document.querySelector('#own button').click()`);
  await until(tab, `document.getElementById('shown').innerText !== ''`);
  return textOf(tab, '#shown');
}

async function checkShown(tab: Tab): Promise<void> {
  const refused = await sendOwn(tab, { path: '/api/private', as: '', way: '' });
  report('a refusal shows its status', /^401 GET \/api\/private/.test(refused), refused);
  report('a refusal shows both challenges', /\nBearer realm=[^]*\nDPoP algs=/.test(refused), refused);
  report('a refusal shows its body', refused.includes('"error": "unauthorized"'), refused);

  const said = await tab.evaluate<string>(`document.querySelector('#said[role=status]').textContent`);
  report(
    'a screen reader is told status and challenge',
    /^401 for GET \/api\/private\. Bearer/.test(said),
    said,
  );

  const stolen = await sendOwn(tab, { path: '/api/private', as: 'visitor', way: 'other-key' });
  report('a token with the proof of another key is refused', stolen.startsWith('401'), stolen);

  const bound = await sendOwn(tab, { path: '/api/private', as: 'visitor', way: 'proof' });
  report('a proof made in the browser is accepted', bound.startsWith('200'), bound);
  report('the page shows what the proof says', /"htm": "GET"[^]*"ath":/.test(bound), bound);
  report('the page shows only the first and last characters of a token', !/ey[\w-]{60}/.test(bound), bound);

  const markup = await sendOwn(tab, { path: '/api/<b id="injected">', as: '', way: '' });
  const injected = await tab.evaluate<boolean>(`document.getElementById('injected') !== null`);
  report('text of a request or a response never becomes markup', !injected, markup);
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

  await tab.evaluate(`document.activeElement.blur(); document.getElementById('shown').replaceChildren()`);
  const all = await tab.evaluate<number>(`document.querySelectorAll('button, input, select').length`);
  await tab.evaluate(`window.reached = new Set();
    document.addEventListener('focusin', ({ target }) => window.reached.add(target))`);
  for (let count = 0; count < all; count += 1) await key('Tab', 9);

  const reached = await tab.evaluate<number>('window.reached.size');
  report(`the Tab key reaches all ${all} controls`, reached === all, String(reached));
  const focused = await tab.evaluate<string>('document.activeElement.textContent');
  report('the last of them sends the form', focused === 'Send', focused);
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

async function checkAccess(tab: Tab, scheme: string, size: keyof typeof SIZES): Promise<void> {
  const [width, height] = SIZES[size];
  const features = [{ name: 'prefers-color-scheme', value: scheme }];
  await tab.send('Emulation.setEmulatedMedia', { features });
  const metrics = { width, height, deviceScaleFactor: 1, mobile: false };
  await tab.send('Emulation.setDeviceMetricsOverride', metrics);
  if (PICTURES !== undefined) {
    const { data } = await tab.send('Page.captureScreenshot', { captureBeyondViewport: true });
    writeFileSync(join(PICTURES, `${size}-${scheme}.png`), Buffer.from(String(data), 'base64'));
  }

  await tab.evaluate(readFileSync(AXE, 'utf8'));
  const violations = await tab.evaluate<Violation[]>(`axe.run().then(({ violations }) =>
    violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html, failureSummary }) => ({ html, failureSummary })) })))`);
  report(
    `axe-core finds nothing, ${scheme}, ${size}`,
    violations.length === 0,
    JSON.stringify(violations, undefined, 1),
  );
  const overflow = await tab.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
  report(`nothing is wider than the window, ${scheme}, ${size}`, overflow <= 0, `${overflow} pixels`);
}

async function checkPage(tab: Tab, demo: Demo): Promise<void> {
  await demo.until(UP);
  const origin = webOriginIn(demo.output());
  await open(tab, origin);
  await sendAll(tab);
  await checkShown(tab);
  await checkPolicy(tab, origin);
  await checkKeyboard(tab);
  for (const size of ['wide', 'narrow'] as const) {
    for (const scheme of SCHEMES) await checkAccess(tab, scheme, size);
  }
}

async function checkProfile(command: string, profile: string): Promise<void> {
  console.log(`profile ${profile}`);
  const demo = startDemo([profile]);
  const browser = await startBrowser(command);
  try {
    await checkPage(browser.tab, demo);
  } finally {
    await browser.stop();
    demo.child.kill('SIGTERM');
    await demo.end();
  }
}

const command = browserCommand();

if (command === undefined) {
  console.log('the page of the demo: skipped, since there is no chromium (apt-get install chromium)');
} else {
  for (const profile of ['A', 'B']) await checkProfile(command, profile);
  process.exitCode = isGood ? 0 : 1;
}

/* Takes the pictures of the demo's page for README.md: profile B, after the thief has tried everything. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { startDemo, UP, webOriginIn } from '../../demo/terminal.ts';
import { startBrowser, type Tab } from './chromium.ts';
import { smaller } from './png.ts';
import { look, open, SCHEMES, until } from './visit.ts';

const FOLDER = new URL('../../../docs/pictures/', import.meta.url);
const WIDTH = 1200;
const HEIGHT = 700;
const MOST_BYTES = 150_000;

const DEMO = new URL('../../demo/', import.meta.url);
/** Of what the pictures show. */
const DIGEST = new URL('taken.txt', import.meta.url);

/** The SHA-256 of the files from which the page is made. */
function digestOfPage(): string {
  const hash = createHash('sha256');
  const names = readdirSync(new URL('web/', DEMO)).sort();
  for (const name of [...names.map((each) => `web/${each}`), 'examples.ts', 'profile-b.ts']) {
    hash.update(readFileSync(new URL(name, DEMO)));
  }
  return hash.digest('hex');
}

/** Whether the page is still the one of which the pictures were taken. */
export const areCurrent = (): boolean => readFileSync(DIGEST, 'utf8').trim() === digestOfPage();

/** Uses the buttons of the story in order, after the rest. */
async function play(tab: Tab): Promise<void> {
  await tab.evaluate(`document.getElementById('send-all').click()`);
  await until(tab, `document.getElementById('tally').textContent !== ''`);
  const cards = await tab.evaluate<number>(`document.querySelectorAll('[data-way]').length`);
  for (let index = 1; index <= cards; index += 1) {
    const card = `[data-way]:nth-child(${index})`;
    await tab.evaluate(`document.querySelector('${card} button').click()`);
    await until(tab, `document.querySelector('${card}[aria-current=true]') !== null`);
  }
}

export async function takePictures(command: string): Promise<void> {
  const demo = startDemo(['B']);
  const browser = await startBrowser(command);
  try {
    await demo.until(UP);
    await look(browser.tab, 'light', WIDTH, HEIGHT);
    await open(browser.tab, webOriginIn(demo.output()));
    await play(browser.tab);
    for (const scheme of SCHEMES) {
      await look(browser.tab, scheme, WIDTH, HEIGHT);
      const { data } = await browser.tab.send('Page.captureScreenshot', { format: 'png' });
      const picture = smaller(Buffer.from(String(data), 'base64'));
      if (picture.length > MOST_BYTES) throw new Error(`the picture has ${picture.length} bytes`);

      writeFileSync(new URL(`demo-${scheme}.png`, FOLDER), picture);
      console.log(`docs/pictures/demo-${scheme}.png: ${picture.length} bytes`);
    }
    writeFileSync(DIGEST, `${digestOfPage()}\n`);
  } finally {
    await browser.stop();
    demo.child.kill('SIGTERM');
    await demo.end();
  }
}

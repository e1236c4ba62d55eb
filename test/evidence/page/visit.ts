/* Opens the page of the demo in a tab, and reads it. */
import type { Tab } from './chromium.ts';

export const SCHEMES = ['light', 'dark'] as const;

export type Scheme = (typeof SCHEMES)[number];

/** Evaluates the expression in the page every 20 ms until it is true. */
export const until = (tab: Tab, expression: string) =>
  tab.evaluate<void>(`new Promise((resolve) => {
    const look = () => (${expression} ? resolve() : setTimeout(look, 20));
    look();
  })`);

export async function open(tab: Tab, origin: string): Promise<void> {
  await tab.send('Page.navigate', { url: `${origin}/` });
  await until(tab, `document.documentElement?.dataset.ready === 'true'`);
}

/** The text of an element as it is shown. */
export const textOf = (tab: Tab, selector: string) =>
  tab.evaluate<string>(`document.querySelector(${JSON.stringify(selector)}).innerText`);

/** Sets colours and size. */
export async function look(tab: Tab, scheme: Scheme, width: number, height: number): Promise<void> {
  const features = [{ name: 'prefers-color-scheme', value: scheme }];
  await tab.send('Emulation.setEmulatedMedia', { features });
  // As on a phone.
  await tab.send('Emulation.setScrollbarsHidden', { hidden: true });
  const metrics = { width, height, deviceScaleFactor: 1, mobile: false };
  await tab.send('Emulation.setDeviceMetricsOverride', metrics);
}

/* What each piece of code that exists for speed alone gains, from the last runs of the tool that takes it out. */
import type { Load } from '../evidence/bench/loads.ts';
import { readResults } from '../evidence/shortcuts/results.ts';
import { SHORTCUTS, type Shortcut } from '../evidence/shortcuts/shortcuts.ts';
import { code, tableOf } from './tables.ts';

const LOADS: Readonly<Record<Load, string>> = {
  'no-token': 'no token',
  warm: 'a cached token',
  thousand: 'many cached tokens',
  cold: 'a new token',
  forged: 'a forged token',
  proofs: 'a new proof',
  logged: 'the access log',
  post: 'a `POST`',
};

function titleOf({ name, changes }: Shortcut): string {
  const files = new Set(changes.map(({ file }) => code(file.replace(/^src\//, ''))));
  return `${name} (${[...files].join(', ')})`;
}

const shownGain = (percent: number | null) =>
  percent === null || percent <= 0 ? 'none alone' : `${percent} %`;

export function shortcuts(): string {
  const results = readResults();
  const rows = SHORTCUTS.flatMap((shortcut) => {
    const measured = results[shortcut.name];
    if (measured === undefined) return [];

    const { micros, microsWithout, gainPercent } = measured;
    const figures = [micros, microsWithout].map((figure) => figure.toFixed(1));
    return [[titleOf(shortcut), LOADS[shortcut.load], ...figures, shownGain(gainPercent)]];
  });
  return tableOf(['shortcut', 'measured with', 'µs with it', 'µs without', 'gain'], rows);
}

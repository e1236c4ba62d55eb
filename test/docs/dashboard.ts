/* The picture of docs/dashboard.json: its upper panels, with what Prometheus made of their expressions for a real
   service. `npm run evidence dashboard -- --write` measures; here is only drawn. */
import { readFileSync } from 'node:fs';
import { END, rectangle, svg, text, type Box, type Colours } from './draw.ts';

/** What the picture says, for whoever does not see it. */
export const DASHBOARD =
  'The dashboard shows three minutes of a real service: requests by status, refusals by reason, durations, tokens, ' +
  'proofs and keys. In the second minute, a thief sends stolen tokens, and the refusals rise.';

interface Target {
  readonly expr: string;
  readonly legendFormat: string;
}

export interface Panel {
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly Target[];
  readonly fieldConfig: { readonly defaults: { readonly unit: string } };
}

/** One line of a panel; `null` where there is no value. */
export interface Series {
  readonly name: string;
  readonly values: readonly (number | null)[];
}

/** What was measured, by the expression. */
export interface Measured {
  readonly stepSeconds: number;
  readonly results: Readonly<Record<string, readonly Series[]>>;
}

const readJson = (name: string) => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'));

/** Below are panels of the process, of decisions and of revocation, which this service does not use. */
const LAST_ROW = 32;

/** The panels that are measured and drawn. */
export const panelsDrawn = (): readonly Panel[] =>
  (readJson('../../docs/dashboard.json').panels as readonly Panel[]).filter(
    ({ gridPos }) => gridPos.y < LAST_ROW,
  );

export const measured = (): Measured => readJson('../evidence/dashboard/results.json');

const WIDTH = 1200;
const UNIT_WIDTH = WIDTH / 24;
const UNIT_HEIGHT = 23;
const GAP = 8;
const TITLE = 26;
const LEGEND_LINE = 15;
const AXIS = 58;
const PAD = 10;
const LETTER = 6.9;

const round = (value: number) => Number(value.toFixed(1));

/** The least of 1, 2 and 5 times a power of ten that is not below the value. */
function niceAbove(value: number): number {
  if (value <= 0) return 1;

  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10);
}

const figure = (value: number) => String(Number(value.toPrecision(2)));

function labelOf(value: number, unit: string): string {
  if (unit === 'reqps') return `${figure(value)}/s`;
  if (unit !== 's') return figure(value);
  if (value === 0) return '0';
  if (value < 1e-3) return `${figure(value * 1e6)} µs`;
  return value < 1 ? `${figure(value * 1e3)} ms` : `${figure(value)} s`;
}

/** Which names share a line of the legend. */
function legendLines(names: readonly string[], width: number): readonly (readonly number[])[] {
  const lines: number[][] = [[]];
  let used = 0;
  for (const [index, name] of names.entries()) {
    const own = name.length * LETTER + 26;
    if (used + own > width && used > 0) {
      lines.push([]);
      used = 0;
    }
    lines.at(-1)!.push(index);
    used += own;
  }
  return lines;
}

const colourAt = ({ series }: Colours, index: number) => series[index % series.length]!;

function legend(names: readonly string[], box: Box, colours: Colours): readonly string[] {
  return legendLines(names, box.width).flatMap((line, row) => {
    let x = box.x;
    return line.map((index) => {
      const name = names[index]!;
      const y = box.y + row * LEGEND_LINE;
      const drawn =
        `<rect x="${round(x)}" y="${y - 6}" width="12" height="4" rx="2" fill="${colourAt(colours, index)}"/>` +
        text(round(x + 17), y, colours.faint, name, 'font-size="11"');
      x += name.length * LETTER + 26;
      return drawn;
    });
  });
}

/** From the beginning to the end, under the chart. */
function times(
  series: readonly Series[],
  stepSeconds: number,
  chart: Box,
  { faint }: Colours,
): readonly string[] {
  const steps = Math.max(1, ...series.map(({ values }) => values.length)) - 1;
  const minutes = figure((steps * stepSeconds) / 60);
  const y = chart.y + chart.height + 14;
  return [
    text(chart.x, y, faint, '0', 'font-size="10"'),
    text(chart.x + chart.width, y, faint, `${minutes} min`, `${END} font-size="10"`),
  ];
}

/** The path of a line, with a gap where values are missing. */
function pathOf(values: readonly (number | null)[], most: number, { x, y, width, height }: Box): string {
  const step = width / Math.max(1, values.length - 1);
  let isDown = false;
  let path = '';
  for (const [index, value] of values.entries()) {
    if (value !== null) {
      const at = `${round(x + index * step)} ${round(y + height - (value / most) * height)}`;
      path += `${isDown ? 'L' : 'M'}${at}`;
    }
    isDown = value !== null;
  }
  return path;
}

function axis(
  most: number,
  unit: string,
  { x, y, width, height }: Box,
  { line, faint }: Colours,
): readonly string[] {
  return [0, 0.5, 1].flatMap((part) => {
    const level = round(y + height * (1 - part));
    return [
      `<path d="M${x} ${level}H${round(x + width)}" stroke="${line}" stroke-opacity="0.35"/>`,
      text(x - 7, level + 4, faint, labelOf(most * part, unit), `${END} font-size="11"`),
    ];
  });
}

function drawPanel(panel: Panel, { results, stepSeconds }: Measured, colours: Colours): readonly string[] {
  const { x, y, w, h } = panel.gridPos;
  const box = {
    x: round(x * UNIT_WIDTH + GAP / 2),
    y: round(y * UNIT_HEIGHT + GAP / 2),
    width: round(w * UNIT_WIDTH - GAP),
    height: round(h * UNIT_HEIGHT - GAP),
  };
  const all = panel.targets.flatMap(({ expr }) => results[expr] ?? []);
  // A route that nobody called has no quantile.
  const series = all.filter(({ values }) => values.some((value) => value !== null));
  const names = series.map(({ name }) => name);
  const lines = legendLines(names, box.width - 2 * PAD).length;
  const chart = {
    x: box.x + AXIS,
    y: box.y + TITLE + 10,
    width: box.width - AXIS - PAD,
    height: box.height - TITLE - 34 - lines * LEGEND_LINE,
  };
  const most = niceAbove(Math.max(...series.flatMap(({ values }) => values.map((value) => value ?? 0)), 0));
  return [
    rectangle(box, `fill="${colours.box}" stroke="${colours.line}" stroke-opacity="0.5"`),
    text(box.x + PAD, box.y + 20, colours.ink, panel.title, 'font-weight="600" font-size="13"'),
    ...axis(most, panel.fieldConfig.defaults.unit, chart, colours),
    ...times(series, stepSeconds, chart, colours),
    ...series.map(
      ({ values }, index) =>
        `<path d="${pathOf(values, most, chart)}" fill="none" stroke="${colourAt(colours, index)}" stroke-width="1.6"/>`,
    ),
    ...legend(
      names,
      { ...box, x: box.x + PAD, y: chart.y + chart.height + 32, width: box.width - 2 * PAD },
      colours,
    ),
  ];
}

export function drawDashboard(colours: Colours): string {
  const panels = panelsDrawn();
  const height = Math.max(...panels.map(({ gridPos }) => gridPos.y + gridPos.h)) * UNIT_HEIGHT;
  const parts = panels.flatMap((panel) => drawPanel(panel, measured(), colours));
  return svg({ width: WIDTH, height, title: DASHBOARD }, parts);
}

/* Draws results: a panel for each section, a bar for each server. */
import type { Results, Section } from './results.ts';
import { describeRun } from './table.ts';

const COLUMNS = 3;
const PANEL_WIDTH = 360;
const BAR_HEIGHT = 12;
const BAR_STEP = 17;
const TITLE_HEIGHT = 40;
const GAP = 22;
const MARGIN = 24;
const NAME_WIDTH = 92;
const VALUE_WIDTH = 112;
const BAR_WIDTH = PANEL_WIDTH - NAME_WIDTH - VALUE_WIDTH;
const OURS = '#0b6e4f';
const BASE = '#8a8f98';
const OTHERS = '#b9c4d0';
const INK = '#1f2328';
const FAINT = '#59636e';

interface Bar {
  readonly server: string;
  readonly value: number;
  readonly label: string;
}

interface Panel {
  readonly title: string;
  readonly bars: readonly Bar[];
  readonly mark?: number;
}

const escape = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');

const text = (x: number, y: number, content: string, attributes = ''): string =>
  `<text x="${x}" y="${y}" ${attributes}>${escape(content)}</text>`;

const figure = (value: number): string =>
  value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 2 : 0 });

const UNITS: Readonly<Record<Section['unit'], string>> = {
  µs: ' µs',
  'requests/s': '/s',
  ms: ' ms',
  MiB: ' MiB',
};

/** Processor time is drawn as a ratio to the marked base; the rest unchanged. */
function panelOf({ title, unit, rows }: Section): Panel {
  const isRatio = unit === 'µs';
  const bars = rows.map(({ server, value, ratio }) => ({
    server,
    value: isRatio ? ratio : value,
    label: `${isRatio ? `${ratio.toFixed(2)} · ` : ''}${figure(value)}${UNITS[unit]}`,
  }));
  return { title, bars, ...(isRatio && { mark: 1 }) };
}

function colourOf(server: string): string {
  if (server.startsWith('gatehouse')) return OURS;

  return ['plain', 'plain-fetch', 'es256', 'rs256', 'rs256-es256', 'verifier'].includes(server)
    ? BASE
    : OTHERS;
}

function packagesIn(count: number): string {
  if (count === 0) return '';

  return ` · ${count} package${count > 1 ? 's' : ''}`;
}

function drawBar({ server, value, label }: Bar, scale: number, y: number): string {
  const width = Math.max(1, value * scale).toFixed(1);
  const weight = server.startsWith('gatehouse') ? ' font-weight="600"' : '';
  return (
    text(NAME_WIDTH - 6, y + 10, server, `text-anchor="end"${weight}`) +
    `<rect x="${NAME_WIDTH}" y="${y}" width="${width}" height="${BAR_HEIGHT}" rx="2" fill="${colourOf(server)}"/>` +
    text(NAME_WIDTH + Number(width) + 5, y + 10, label, `fill="${FAINT}"${weight}`)
  );
}

/** Below the case, what it is relative to: in one line, the titles of two columns would overlap. */
function drawTitle(title: string): string {
  const at = title.indexOf(', relative to');
  const name = at < 0 ? title : title.slice(0, at);
  const base = at < 0 ? '' : text(0, 28, title.slice(at + 2), `fill="${FAINT}" font-size="10"`);
  return text(0, 13, name, 'font-weight="600" font-size="12"') + base;
}

function drawPanel({ title, bars, mark }: Panel): string {
  const scale = BAR_WIDTH / Math.max(...bars.map(({ value }) => value), mark ?? 0);
  const drawn = bars.map((bar, index) => drawBar(bar, scale, TITLE_HEIGHT + index * BAR_STEP)).join('');
  const x = mark === undefined ? 0 : NAME_WIDTH + mark * scale;
  const line =
    mark === undefined
      ? ''
      : `<line x1="${x}" x2="${x}" y1="${TITLE_HEIGHT - 4}" y2="${TITLE_HEIGHT + bars.length * BAR_STEP}" stroke="${INK}" stroke-dasharray="2 3"/>`;
  return drawTitle(title) + drawn + line;
}

/** Rows of panels, each as high as its highest panel. */
function lay(panels: readonly Panel[], top: number): { drawn: string; bottom: number } {
  let drawn = '';
  let y = top;
  for (let first = 0; first < panels.length; first += COLUMNS) {
    const row = panels.slice(first, first + COLUMNS);
    drawn += row
      .map(
        (panel, column) =>
          `<g transform="translate(${MARGIN + column * (PANEL_WIDTH + GAP)} ${y})">${drawPanel(panel)}</g>\n`,
      )
      .join('');
    y += TITLE_HEIGHT + Math.max(...row.map(({ bars }) => bars.length)) * BAR_STEP + GAP;
  }
  return { drawn, bottom: y };
}

/** An SVG document on a white background, readable on light and dark pages. */
export function picture(results: Results): string {
  const review: Panel = {
    title: 'tokens of source that a reviewer must read',
    bars: results.review.map(({ server, tokens, packages }) => ({
      server,
      value: tokens,
      label: figure(tokens) + packagesIn(packages),
    })),
  };
  // On one core, requests per second show the same, and are more affected by other load.
  const drawnSections = results.sections.filter(({ unit }) => unit !== 'requests/s');
  const panels = [...drawnSections.map(panelOf), ...(review.bars.length > 0 ? [review] : [])];
  const width = 2 * MARGIN + COLUMNS * PANEL_WIDTH + (COLUMNS - 1) * GAP;
  const header = 92;
  const { drawn, bottom } = lay(panels, header);
  const captions = [
    'CPU time of a request, relative to a plain node:http server that sends the same bytes, or to one that only verifies',
    ...describeRun(results),
  ];
  const heading =
    text(MARGIN, 30, 'gatehouse beside its peers', 'font-size="18" font-weight="600"') +
    captions.map((caption, line) => text(MARGIN, 48 + line * 15, caption, `fill="${FAINT}"`)).join('');
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${bottom}" width="${width}" height="${bottom}" ` +
    `font-family="system-ui, sans-serif" font-size="11" fill="${INK}">\n<rect width="100%" height="100%" fill="#fff"/>\n${heading}\n${drawn}</svg>\n`
  );
}

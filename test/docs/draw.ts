/* What the drawn pictures of the documents share: colours for a light page and a dark one, boxes, arrows, text. */

export interface Colours {
  readonly ink: string;
  readonly faint: string;
  readonly line: string;
  readonly box: string;
  readonly own: string;
  readonly onOwn: string;
  readonly refusal: string;
  /** For the lines of a chart, in their order. */
  readonly series: readonly string[];
}

export const LIGHT: Colours = {
  ink: '#1f2328',
  faint: '#59636e',
  line: '#8c959f',
  box: '#f6f8fa',
  own: '#0b6e4f',
  onOwn: '#ffffff',
  refusal: '#9a3412',
  series: ['#0b6e4f', '#b45309', '#1d4ed8', '#a21caf', '#b42318', '#4d7c0f', '#0e7490', '#57534e'],
};

export const DARK: Colours = {
  ink: '#e6edf3',
  faint: '#9198a1',
  line: '#6e7681',
  box: '#161b22',
  own: '#3fb68b',
  onOwn: '#06231a',
  refusal: '#f0a172',
  series: ['#3fb68b', '#e8a33d', '#79a8ff', '#d98bea', '#ff8f84', '#a3c754', '#4cc3d9', '#b8b2ab'],
};

const escape = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');

export const text = (x: number, y: number, fill: string, content: string, attributes = ''): string =>
  `<text x="${x}" y="${y}" fill="${fill}"${attributes && ` ${attributes}`}>${escape(content)}</text>`;

export const MIDDLE = 'text-anchor="middle"';
export const END = 'text-anchor="end"';
export const BOLD = 'font-weight="600"';
export const SMALL = 'font-size="12"';

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export const rectangle = ({ x, y, width, height }: Box, attributes: string): string =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="8" ${attributes}/>`;

/** A frame around what belongs together. */
export const frame = (box: Box, colour: string): string =>
  rectangle(box, `fill="none" stroke="${colour}" stroke-dasharray="4 4"`);

/** A name in the middle of a box, and a line under it. */
function label(box: Box, ink: string, faint: string, name: string, what: string): string {
  const x = box.x + box.width / 2;
  const y = box.y + box.height / 2;
  if (what === '') return text(x, y + 5, ink, name, `${MIDDLE} ${BOLD}`);

  return [
    text(x, y - 3, ink, name, `${MIDDLE} ${BOLD}`),
    text(x, y + 15, faint, what, `${MIDDLE} ${SMALL}`),
  ].join('\n');
}

/** A box with a name and a line under it. */
export const actor = (box: Box, { ink, faint, line, box: fill }: Colours, name: string, what = ''): string =>
  [rectangle(box, `fill="${fill}" stroke="${line}"`), label(box, ink, faint, name, what)].join('\n');

/** The same for gatehouse. */
export const ownBox = (box: Box, { own, onOwn }: Colours, name: string, what = ''): string =>
  [rectangle(box, `fill="${own}"`), label(box, onOwn, onOwn, name, what)].join('\n');

export const DASHED = 'stroke-dasharray="4 4"';

export const arrow = (from: string, colour: string, head: string, attributes = ''): string =>
  `<path d="${from}" fill="none" stroke="${colour}" stroke-width="1.6"${attributes && ` ${attributes}`}/>\n` +
  `<path d="${head}" fill="${colour}"/>`;

/** Heads of arrows, by the way that they point. */
export const right = (x: number, y: number) => `M${x} ${y}l-9 -5v10z`;

export const left = (x: number, y: number) => `M${x} ${y}l9 -5v10z`;

export const down = (x: number, y: number) => `M${x} ${y}l-5 -9h10z`;

export const up = (x: number, y: number) => `M${x} ${y}l-5 9h10z`;

interface Sheet {
  readonly width: number;
  readonly height: number;
  /** What the picture says, for whoever does not see it. */
  readonly title: string;
}

export const svg = ({ width, height, title }: Sheet, parts: readonly string[]): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
  `role="img" font-family="system-ui, sans-serif" font-size="14">\n` +
  `<title>${escape(title)}</title>\n${parts.join('\n')}\n</svg>\n`;

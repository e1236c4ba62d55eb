/* The picture of README.md that shows where gatehouse stands, once for a light page and once for a dark one. */

interface Colours {
  readonly ink: string;
  readonly faint: string;
  readonly line: string;
  readonly box: string;
  readonly own: string;
  readonly onOwn: string;
  readonly refusal: string;
}

const LIGHT: Colours = {
  ink: '#1f2328',
  faint: '#59636e',
  line: '#8c959f',
  box: '#f6f8fa',
  own: '#0b6e4f',
  onOwn: '#ffffff',
  refusal: '#9a3412',
};

const DARK: Colours = {
  ink: '#e6edf3',
  faint: '#9198a1',
  line: '#6e7681',
  box: '#161b22',
  own: '#3fb68b',
  onOwn: '#06231a',
  refusal: '#f0a172',
};

const WIDTH = 880;
const HEIGHT = 300;

const escape = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');

const text = (x: number, y: number, fill: string, content: string, attributes = ''): string =>
  `<text x="${x}" y="${y}" fill="${fill}"${attributes && ` ${attributes}`}>${escape(content)}</text>`;

const MIDDLE = 'text-anchor="middle"';
const BOLD = 'font-weight="600"';

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const rectangle = ({ x, y, width, height }: Box, attributes: string): string =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="8" ${attributes}/>`;

/** A box with a name and a line under it. */
function actor(box: Box, { ink, faint, line, box: fill }: Colours, name: string, what: string): string {
  const x = box.x + box.width / 2;
  const y = box.y + box.height / 2;
  return [
    rectangle(box, `fill="${fill}" stroke="${line}"`),
    text(x, y - 3, ink, name, `${MIDDLE} ${BOLD}`),
    text(x, y + 15, faint, what, `${MIDDLE} font-size="12"`),
  ].join('\n');
}

const arrow = (from: string, colour: string, head: string, attributes = ''): string =>
  `<path d="${from}" fill="none" stroke="${colour}" stroke-width="1.6"${attributes && ` ${attributes}`}/>\n` +
  `<path d="${head}" fill="${colour}"/>`;

/** Heads of arrows, by the way that they point. */
const right = (x: number, y: number) => `M${x} ${y}l-9 -5v10z`;

const left = (x: number, y: number) => `M${x} ${y}l9 -5v10z`;

const down = (x: number, y: number) => `M${x} ${y}l-5 -9h10z`;

const CHECKS = ['request', 'token', 'proof', 'access'] as const;

/** The gate, with its checks in their order. */
function gate({ own, onOwn }: Colours): string {
  const checks = CHECKS.map((name, index) => {
    const x = 335 + index * 62;
    return (
      `<rect x="${x}" y="140" width="56" height="26" rx="5" fill="${onOwn}" fill-opacity="0.16"/>` +
      text(x + 28, 157, onOwn, name, `${MIDDLE} font-size="12"`)
    );
  });
  return [
    rectangle({ x: 326, y: 104, width: 260, height: 78 }, `fill="${own}"`),
    text(456, 128, onOwn, 'gatehouse', `${MIDDLE} ${BOLD}`),
    ...checks,
  ].join('\n');
}

function draw(colours: Colours): string {
  const { ink, faint, line, refusal } = colours;
  const small = 'font-size="12"';
  const parts = [
    rectangle(
      { x: 308, y: 74, width: 556, height: 126 },
      `fill="none" stroke="${line}" stroke-dasharray="4 4"`,
    ),
    text(848, 94, faint, 'your Node process', `text-anchor="end" ${small}`),
    actor({ x: 16, y: 108, width: 130, height: 70 }, colours, 'client', 'app, agent, service'),
    gate(colours),
    actor({ x: 700, y: 108, width: 148, height: 70 }, colours, 'your handlers', 'never see a bad token'),
    actor({ x: 376, y: 8, width: 160, height: 46 }, colours, 'identity provider', 'the one you have'),
    actor({ x: 376, y: 238, width: 160, height: 46 }, colours, 'Redis or Valkey', 'only with replicas'),
    arrow('M146 130H318', ink, right(326, 130)),
    text(226, 120, ink, 'token, and a fresh proof', `${MIDDLE} ${small}`),
    arrow('M326 160H154', refusal, left(146, 160)),
    text(226, 178, refusal, 'refusal, and its reason', `${MIDDLE} ${small}`),
    arrow('M586 143H692', ink, right(700, 143)),
    text(643, 133, ink, 'the caller', `${MIDDLE} ${small}`),
    arrow('M456 54V96', ink, down(456, 104)),
    text(466, 70, faint, 'public keys', small),
    arrow('M456 238V190', ink, 'M456 182l-5 9h10z', 'stroke-dasharray="4 4"'),
    text(466, 222, faint, 'used proofs', small),
  ];
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" ` +
    `role="img" font-family="system-ui, sans-serif" font-size="14">\n` +
    `<title>${ALTERNATIVE}</title>\n${parts.join('\n')}\n</svg>\n`
  );
}

/** What the picture says, for whoever does not see it. */
export const ALTERNATIVE =
  'A client sends a token and a proof. gatehouse checks request, token, proof and access, with the public keys ' +
  'of the identity provider. Your handlers get the caller; a refused client gets the reason.';

/** Each picture by its path in the repository. */
export const PICTURES: Readonly<Record<string, string>> = {
  'docs/where-light.svg': draw(LIGHT),
  'docs/where-dark.svg': draw(DARK),
};

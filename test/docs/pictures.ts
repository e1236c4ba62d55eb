/* The pictures that are drawn from the repository, each for a light page and for a dark one. */
import { drawDashboard, DASHBOARD } from './dashboard.ts';
import { DARK, LIGHT, type Colours } from './draw.ts';
import { drawSequence, SEQUENCE } from './sequence.ts';
import { drawShapes, SHAPES } from './shapes.ts';
import { drawWhere, WHERE } from './where.ts';

interface Drawing {
  readonly draw: (colours: Colours) => string;
  /** For whoever does not see it. */
  readonly says: string;
  readonly width: number;
}

const DRAWINGS: Readonly<Record<string, Drawing>> = {
  where: { draw: drawWhere, says: WHERE, width: 880 },
  shapes: { draw: drawShapes, says: SHAPES, width: 880 },
  sequence: { draw: drawSequence, says: SEQUENCE, width: 880 },
  dashboard: { draw: drawDashboard, says: DASHBOARD, width: 1000 },
};

/** Where the pictures are. */
export const FOLDER = 'docs/pictures';

/** Each drawn picture by its path in the repository. */
export const PICTURES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(DRAWINGS).flatMap(([name, { draw }]) => [
    [`${FOLDER}/${name}-light.svg`, draw(LIGHT)],
    [`${FOLDER}/${name}-dark.svg`, draw(DARK)],
  ]),
);

/** A picture in a page of a folder; `folder` is the way to the pictures from there. */
const pictureIn = (folder: string, name: string, ending: string, says: string, width: number) =>
  [
    `<picture><source media="(prefers-color-scheme: dark)" srcset="${folder}/${name}-dark.${ending}">`,
    `<img src="${folder}/${name}-light.${ending}" width="${width}" alt="${says}"></picture>\n`,
  ].join('');

/** The block of a page that shows a drawn picture. */
export function pictureBlock(name: string, folder = FOLDER): string {
  const { says, width } = DRAWINGS[name]!;
  return pictureIn(folder, name, 'svg', says, width);
}

/** What the picture of the demo's page says. `npm run evidence page pictures` takes it. */
const DEMO =
  "The demo's page: a thief sends a stolen token without a proof, with another key's proof, and with a copied " +
  'proof, and gets 401 each time.';

export const demoBlock = (): string => pictureIn(FOLDER, 'demo', 'png', DEMO, 880);

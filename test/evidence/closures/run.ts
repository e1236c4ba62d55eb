/* Prints what a program loads through each entry point of src, in files and tokens, without the options and with all of
   them; what one warm request enters; and figures about the house. `--files` lists the files too: of every entry point
   with all options and of every request, or of those named, with the options named, as in `--files createGate proxy`.
   It reports only: `npm test architecture` fails when an entry point loads more than it may.

   Shows: how much code each export loads, compared with the project's goals (`-- --files createGate proxy` lists the
   files of one deployment, `-- --files GET` those that one request enters).
   Takes: 5 s.
   Needs: nothing. */
import { closureOf, countTokens, doorsOf, isOption, readSources } from '../../support/closures.ts';
import { printTable, type Row } from '../../support/figures.ts';
import { countsOf, readEntered, rowsOf, WALKS } from './entered.ts';
import { figuresOf } from './house.ts';

const sources = readSources();

const doors = doorsOf(sources).map((door) => {
  const withOptions = closureOf({ ...door, hasOptions: true }, sources);
  return { ...door, ...closureOf(door, sources), withOptions };
});

const rows = doors.map(({ name, files, tokens, withOptions, bound, hasOptions }) => ({
  'entry point': name,
  files: hasOptions ? '' : files.length,
  tokens: hasOptions ? '' : tokens,
  'files with options': withOptions.files.length,
  'tokens with options': withOptions.tokens,
  bound: Number.isFinite(bound) ? bound : '',
  over: tokens > bound ? tokens - bound : '',
}));

/** `cors` is `options/cors.ts`, `redis` all of `options/redis/`, and `yaml` the reader of a file that may be there. */
const nameOf = (file: string) => file.replace(/^(?:options|settings)\/([^/]+?)(?:\/.*|\.ts)$/, '$1');

const listsFiles = process.argv.includes('--files');
const named = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const options = [...sources.keys()].filter((file) => isOption(file) && named.includes(nameOf(file)));

const known = [
  ...doors.map(({ name }) => name),
  ...WALKS.map(({ name }) => name),
  ...new Set([...sources.keys()].filter(isOption).map(nameOf)),
];

const unknown = named.filter((word) => !known.includes(word));
if (unknown.length > 0) throw new Error(`there is no ${unknown.join(', ')}; choose from ${known.join(', ')}`);

function printFiles({ name, entries, withOptions }: (typeof doors)[number]): void {
  const isWhole = named.length === 0;
  const { files } = isWhole ? withOptions : closureOf({ entries: [...entries, ...options] }, sources);
  const listed = files.map((file) => ({
    file: isWhole && isOption(file) ? `(${file})` : file,
    tokens: countTokens(sources.get(file)!),
  }));
  const total = listed.reduce((sum, { tokens }) => sum + tokens, 0);
  printTable(name, [...listed, { file: `${files.length} files`, tokens: total }]);
}

printTable('what each entry point loads', rows);

const entered = readEntered();

const walks = WALKS.map(({ name, what, goal }): Row => {
  const { files, functions, nameless, calls } = countsOf(entered[name]!);
  return { name, files, functions, nameless, calls, goal: goal.join(' / '), what };
});

printTable('what one warm request enters', walks);
printTable('the house', figuresOf(sources));

if (listsFiles) {
  const isListed = ({ name }: { readonly name: string }) => named.length === 0 || named.includes(name);
  const chosen = doors.filter(isListed);
  const isOfWalk = WALKS.some(({ name }) => named.includes(name));
  for (const door of chosen.length > 0 || isOfWalk ? chosen : doors) printFiles(door);
  for (const { name } of WALKS.filter(isListed)) printTable(name, rowsOf(entered[name]!));
}

const over = doors.filter(({ tokens, bound }) => tokens > bound).map(({ name }) => name);

if (over.length > 0) {
  console.log(
    `above the bounds that this project sets itself: ${over.join(', ')}; \`npm test architecture\` keeps them from growing`,
  );
}

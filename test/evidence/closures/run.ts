/* Prints what a program loads through each entry point of src, in files and tokens, without the options and with all of
   them; `--files` lists the files too: of every entry point with all options, or of those named with the options named,
   as in `--files createGate proxy-tunnel`. It reports only: `npm test architecture` fails when a door loads more than it
   may.

   Shows: the files and source tokens that each entry point of `src` loads, with and without options, and the bound
   of each (`--files createGate proxy-tunnel` lists the files of one deployment).
   Takes: 3 s.
   Needs: nothing. */
import { closureOf, countTokens, doorsOf, isOption, readSources } from '../../support/closures.ts';
import { printTable } from '../../support/figures.ts';

const sources = readSources();

const doors = doorsOf(sources).map((door) => {
  const withOptions = closureOf({ ...door, hasOptions: true }, sources);
  return { ...door, ...closureOf(door, sources), withOptions };
});

const rows = doors.map(({ name, files, tokens, withOptions, bound, hasOptions }) => ({
  door: name,
  files: hasOptions ? '' : files.length,
  tokens: hasOptions ? '' : tokens,
  'files with options': withOptions.files.length,
  'tokens with options': withOptions.tokens,
  bound: Number.isFinite(bound) ? bound : '',
  over: tokens > bound ? tokens - bound : '',
}));

printTable('closures of the doors', rows);

const named = process.argv.slice(2).filter((word) => !word.startsWith('--'));

const nameOf = (file: string) => file.replace(/^options\/(?:.*\/)?|\.ts$/g, '');

const options = [...sources.keys()].filter((file) => isOption(file) && named.includes(nameOf(file)));
const chosen = doors.filter(({ name }) => named.includes(name));
const known = [...doors.map(({ name }) => name), ...[...sources.keys()].filter(isOption).map(nameOf)];
const unknown = named.filter((word) => !known.includes(word));
if (unknown.length > 0) throw new Error(`there is no ${unknown.join(', ')}; choose from ${known.join(', ')}`);

/** Any option needs the settings of options. */
const optionEntries = options.length === 0 ? [] : ['settings/option-settings.ts', ...options];

if (process.argv.includes('--files')) {
  for (const { name, entries, withOptions } of chosen.length > 0 ? chosen : doors) {
    const isWhole = named.length === 0;
    const { files } = isWhole ? withOptions : closureOf({ entries: [...entries, ...optionEntries] }, sources);
    const listed = files.map((file) => ({
      file: isWhole && isOption(file) ? `(${file})` : file,
      tokens: countTokens(sources.get(file)!),
    }));
    const total = listed.reduce((sum, { tokens }) => sum + tokens, 0);
    printTable(name, [...listed, { file: `${files.length} files`, tokens: total }]);
  }
}

const over = doors.filter(({ tokens, bound }) => tokens > bound).map(({ name }) => name);

if (over.length > 0) {
  console.log(
    `\nabove the bounds that this project sets itself: ${over.join(', ')}; \`npm test architecture\` keeps them from growing`,
  );
}

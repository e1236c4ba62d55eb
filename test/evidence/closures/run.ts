/* Prints what a program loads through each entry point of src, in files and tokens, without the options and with all of
   them; `--files` lists the files too. It reports only: `npm test architecture` fails when a door loads more than it may.

   Shows: the files and source tokens that each entry point of `src` loads, with and without options, and the bound
   of each (`--files` lists the files).
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

if (process.argv.includes('--files')) {
  for (const { name, withOptions } of doors) {
    const listed = withOptions.files.map((file) => ({
      file: isOption(file) ? `(${file})` : file,
      tokens: countTokens(sources.get(file)!),
    }));
    printTable(name, listed);
  }
}

const over = doors.filter(({ tokens, bound }) => tokens > bound).map(({ name }) => name);

if (over.length > 0) {
  console.log(
    `\nabove the bounds that this project sets itself: ${over.join(', ')}; \`npm test architecture\` keeps them from growing`,
  );
}

/* Prints what a program loads by each door of src, in files and tokens, without the options and with all of
   them; `--files` lists the files too. Exits with 1 when a door is over its bound.

   Shows: what a program loads by each door of `src`, in files and tokens, with and without options, beside
   its bound (`--files` lists them).
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

process.exitCode = doors.some(({ tokens, bound }) => tokens > bound) ? 1 : 0;

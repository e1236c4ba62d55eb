/* The cost of many routes, in processor time: making and checking them, and the index, at startup, each in a new
   process, and the search for a path, in microseconds. Every ten routes are those of one resource, with
   `/api/resource7/mine` beside `/api/resource7/{id}`; or half of the routes begin with a parameter and half with a
   literal, which is the worst order for the check of overlaps. With `--write`, keeps the figures of the most routes
   for docs/speed.md, the worse of both kinds.

   Shows: the [startup and lookup cost](docs/speed.md#many-routes) of many routes.
   Takes: 20 s.
   Needs: nothing. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Route } from '../../../src/service/routes/route.ts';
import { keep } from '../sizing/results.ts';

/** A module of the build: tsx gives names to functions, which takes longer than the search itself. */
const built = (name: string) => import(new URL(`../../../dist/${name}.js`, import.meta.url).href);

const { open }: typeof import('../../../src/gate/rules/access.ts') = await built('gate/rules/access');
const router: typeof import('../../../src/service/routes/router.ts') = await built('service/routes/router');
const made: typeof import('../../../src/service/routes/route.ts') = await built('service/routes/route');
const { createRouter, routesProblems } = router;
const { del, get, patch, post, put } = made;

const SIZES = [10, 100, 1_000, 8_000];
const ROUTES_OF_A_RESOURCE = 10;
const SEARCHES = 100_000;
const ROUNDS = 9;

const nothing = () => ({});

const resource = (at: string): Route[] => [
  get(at, open, nothing),
  post(at, open, nothing),
  get(`${at}/mine`, open, nothing),
  get(`${at}/{id}`, open, nothing),
  put(`${at}/{id}`, open, nothing),
  patch(`${at}/{id}`, open, nothing),
  del(`${at}/{id}`, open, nothing),
  get(`${at}/{id}/items`, open, nothing),
  post(`${at}/{id}/items`, open, nothing),
  get(`${at}/{id}/items/{item}`, open, nothing),
];

const resources = (count: number) =>
  Array.from({ length: count / ROUTES_OF_A_RESOURCE }, (_, at) => resource(`/api/resource${at}`)).flat();

const mixed = (count: number) =>
  Array.from({ length: count / 2 }, (_, at) => [
    get(`/{tenant}/orders${at}/{id}`, open, nothing),
    get(`/shop${at}/items/{id}`, open, nothing),
  ]).flat();

const micros = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

const median = (figures: readonly number[]) =>
  figures.toSorted((one, other) => one - other)[ROUNDS >> 1] ?? 0;

/** Of one search, over paths that differ. */
function searchMicros(find: ReturnType<typeof createRouter>, paths: readonly string[]) {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const before = micros();
    for (let at = 0; at < SEARCHES; at += 1) find(paths[at % paths.length] ?? '/');
    return (micros() - before) / SEARCHES;
  });
  return median(rounds);
}

/** Makes so many routes. */
const KINDS: Readonly<Record<string, (count: number) => Route[]>> = { usual: resources, mixed };

const HEAD =
  '| routes | making and checks, ms | index, ms | literal path, µs | path with parameters, µs | no match, µs |\n|---|---|---|---|---|---|';

function measure(count: number, make: (count: number) => Route[]) {
  const before = micros();
  const routes = make(count);
  const problems = routesProblems({ routes });
  const checked = micros();
  const find = createRouter(routes);
  const indexed = micros();
  if (problems.length > 0) throw new Error(problems.join('\n'));

  const patterns = routes.map(({ pattern }) => pattern);
  const literal = patterns.filter((pattern) => !pattern.includes('{'));
  const withParameters = patterns
    .filter((pattern) => pattern.includes('{'))
    .map((pattern, at) => pattern.replaceAll(/\{\w+\}/g, `x${at}`));
  const missing = patterns.map((pattern) => `${pattern.replaceAll(/\{\w+\}/g, 'x')}/nothing/here`);

  return {
    count,
    checkMillis: (checked - before) / 1_000,
    indexMillis: (indexed - checked) / 1_000,
    searchMicros: [literal, withParameters, missing].map((paths) =>
      paths.length === 0 ? undefined : searchMicros(find, paths),
    ),
  };
}

type Measured = ReturnType<typeof measure>;

const cellsOf = ({ count, checkMillis, indexMillis, searchMicros: micros }: Measured) => [
  count.toLocaleString('en'),
  checkMillis.toFixed(1),
  indexMillis.toFixed(1),
  ...micros.map((one) => one?.toFixed(2) ?? '–'),
];

/** In a new process. */
function measured(count: number, kind: string): Measured {
  const parameters = ['--import', 'tsx', fileURLToPath(import.meta.url), kind, String(count)];
  return JSON.parse(execFileSync(process.execPath, parameters, { encoding: 'utf8' })) as Measured;
}

const [kind = '', size] = process.argv.slice(2);

if (kind in KINDS) {
  console.log(JSON.stringify(measure(Number(size), KINDS[kind]!)));
} else {
  const last = Object.keys(KINDS).map((one) => {
    console.log(`\n${one}\n\n${HEAD}`);

    const all = SIZES.map((count) => {
      const figures = measured(count, one);
      console.log(`| ${cellsOf(figures).join(' | ')} |`);
      return figures;
    });

    return all.at(-1)!;
  });

  keep({
    routes: {
      node: process.version,
      count: last[0]!.count,
      startupMillis: Math.round(
        Math.max(...last.map(({ checkMillis, indexMillis }) => checkMillis + indexMillis)),
      ),
      searchMicros: Math.max(...last.flatMap(({ searchMicros: micros }) => micros.map((one) => one ?? 0))),
    },
  });
}

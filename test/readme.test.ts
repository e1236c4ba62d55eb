/* The README's tables of routes and settings, and its names, held against src, so that they cannot go stale. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { tableOf } from '../src/profiles/tables.ts';
import { policyA } from '../src/profiles/a.ts';
import { PROOF_FLAWS, REQUEST_FLAWS, TOKEN_FLAWS, UNAVAILABILITIES } from '../src/base/refusal.ts';
import type { Row } from '../src/routes/row.ts';
import { code, README, ROOT, tableUnder } from './readme/tables.ts';
import { load, problemsOf, REQUIRED, SETTINGS } from './settings/every-setting.ts';
import { callerWith, clock, settingsWith } from './support/caller.ts';

/** What the name of an access is in the README. */
function inWords(access: string): string {
  const list = (text = '', word = '') => text.split(' ').map(code).join(` ${word} `);
  const [, any] = /^any scope of (.+)$/.exec(access) ?? [];
  if (any !== undefined) return `valid token with scope ${list(any, 'or')}`;
  const [, scopes] = /^scope (.+)$/.exec(access) ?? [];
  if (scopes !== undefined) return `valid token with scope ${list(scopes, 'and')}`;
  const [, equal = '', value] = /^claim (\S+) equals (.+)$/.exec(access) ?? [];
  if (value !== undefined) return `valid token; claim ${code(equal)} equals ${code(value)}`;
  const [, including = '', values] = /^claim (\S+) includes (.+)$/.exec(access) ?? [];
  if (values !== undefined) return `valid token; claim ${code(including)} includes ${list(values, 'and')}`;
  const [, what] = /^claims (.+)$/.exec(access) ?? [];
  if (what !== undefined) return `valid token; ${what}`;
  return { open: 'none', authenticated: 'valid access token', optional: 'token optional' }[access] ?? access;
}

const everything = callerWith({
  scope: 'read:messages admin:access admin read:users',
  org_id: 'org_123456',
  roles: ['editor', 'viewer'],
  subscription: 'premium',
  verified: true,
});

async function rowInWords({ pattern, access, run }: Row): Promise<string[]> {
  const fields = Object.keys(await run(everything, {}, clock.now()));
  return ['GET', code(pattern), inWords(access.name), fields.map(code).join(', ')];
}

const routes = [
  ['Profile A', {}, (rows: readonly Row[]) => rows],
  [
    'Profile A with the scope policy',
    { SCOPE_POLICY: 'true' },
    (rows: readonly Row[]) => rows.filter(({ pattern }) => /admin|users/.test(pattern)),
  ],
  ['Profile B', { PROFILE: 'B' }, (rows: readonly Row[]) => rows],
] as const;
for (const [heading, environment, choose] of routes) {
  test(`the README has the table of ${heading} with access and fields as they are`, async () => {
    const written = tableUnder(heading).map(([method, path, auth, answer = '']) => [
      method,
      path,
      auth,
      answer.replace(/^200, [A-Z][a-z ]+: /, ''),
    ]);
    const rows = choose(tableOf(settingsWith({ PROFILE: 'A', ...environment })).rows);
    assert.deepEqual(written, await Promise.all(rows.map(rowInWords)));
  });
}

test('the README has the prefixes of the scope policy', () => {
  const rules = policyA.map(({ prefix, access }) => [`/${prefix.join('/')}`, inWords(access.name)] as const);
  const expected = rules.map(([path, auth]) => [`${code(path)}, ${code(`${path}/**`)}`, auth]);
  assert.deepEqual(tableUnder('Profile A with the scope policy', 1), expected);
});

test('the README has every setting with its names and its default', () => {
  const [inA, inB] = ['A', 'B'].map((PROFILE) => load({ environment: { ...REQUIRED, PROFILE } }).settings);
  const shown = (value: unknown) =>
    value === undefined || String(value) === ''
      ? 'none'
      : code(
          Array.isArray(value) ? value.join(', ') : String(value).replace(REQUIRED.IDP_DOMAIN, '<domain>'),
        );
  assert.deepEqual(
    tableUnder('Settings').map((row) => row.slice(0, 3)),
    SETTINGS.map(({ name, env, yaml, byDefault }) => {
      const [a, b] = [shown(inA?.[name]), shown(inB?.[name])];
      const byProfile = a === b || name === 'profile' ? b : `${a} in A, ${b} in B`;
      return [
        env === undefined ? '–' : code(env),
        yaml === undefined ? '–' : code(yaml),
        byDefault === 'required' ? 'required' : byProfile,
      ];
    }),
  );
});

test('the README has the bounds of every setting that has bounds', () => {
  const outOfBounds = SETTINGS.flatMap(({ env, bad }) =>
    env !== undefined && bad !== undefined ? [[env, '-1']] : [],
  );
  const environment = { ...REQUIRED, ...Object.fromEntries(outOfBounds) };
  const bounds = problemsOf({ environment }).flatMap((problem) => {
    const [, env = '', from, to] =
      /^(\S+) or \S+: must be a whole number from (\d+) to (\d+)$/.exec(problem) ?? [];
    return to === undefined ? [] : [[code(env), `${from} to ${to}`]];
  });
  const written = tableUnder('Settings')
    .map(([env, , , rule = '']) => [env, /^\d+ to \d+/.exec(rule)?.[0]])
    .filter(([, range]) => range !== undefined);
  assert.ok(bounds.length > 0);
  assert.deepEqual(written, bounds);
});

test('the README has a sample of application.yml that loads', () => {
  const [, sample = ''] = /```yaml\n([^`]+)```/.exec(README) ?? [];
  const { settings, unknown } = load({ files: { 'application.yml': sample } });
  assert.deepEqual([settings.applicationName, settings.dpopMode, unknown], ['orders-api', 'REQUIRED', []]);
});

test('the README names in the table of RFC 9449 only reasons and tests that exist', () => {
  const known = [
    ...Object.keys({ ...TOKEN_FLAWS, ...PROOF_FLAWS, ...REQUEST_FLAWS, ...UNAVAILABILITIES }),
    'use_dpop_nonce',
  ];
  const folder = new URL('test/sender/', ROOT);
  const tests = readdirSync(folder)
    .map((name) => readFileSync(new URL(name, folder), 'utf8'))
    .join('\n');
  for (const [clause = '', , , refusals = '', shown = ''] of tableUnder('The checks of RFC 9449')) {
    const reasons = [...refusals.matchAll(/`([^`]+)`/g)].map(([, reason = '']) => reason);
    assert.deepEqual(
      reasons.filter((reason) => !known.includes(reason)),
      [],
      clause,
    );
    const [, file = '', name = ''] = /^`(.+)`: (?:refuse )?(.+)$/.exec(shown) ?? [];
    assert.ok(existsSync(new URL(file, folder)), file);
    const parts = `${name} [RFC 9449 ${clause}`.split('…');
    assert.deepEqual(
      parts.filter((part) => !tests.includes(part)),
      [],
      `no such test: ${shown}`,
    );
  }
});

test('the README names only scripts that package.json has', () => {
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const named = [...README.matchAll(/\bnpm (?:run )?([\w:-]+)/g)]
    .map(([, name = '']) => name)
    .filter((name) => name !== 'ci');
  assert.ok(named.length > 3);
  assert.deepEqual(
    named.filter((name) => !Object.hasOwn(scripts, name)),
    [],
  );
});

test('the README names only files and headings that are there', () => {
  const files = [...README.matchAll(/`((?:src|test)\/[\w./-]+|\.env\.example)`/g)].map(
    ([, name = '']) => name,
  );
  const rooms = [...README.matchAll(/`((?:\w+\/)?[a-z-]+\.ts)`/g)].map(([, name = '']) => `src/${name}`);
  assert.ok(files.length > 10 && rooms.length > 30);
  const isThere = (name: string) => existsSync(new URL(name, ROOT));
  assert.deepEqual(
    [...files, ...rooms].filter((name) => !isThere(name) && !isThere(name.replace(/^src\//, ''))),
    [],
  );
  const anchor = (text: string) =>
    text
      .toLowerCase()
      .replace(/[^a-z0-9 -]/g, '')
      .replaceAll(' ', '-');
  const headings = [...README.matchAll(/^#+ (.+)$/gm)].map(([, text = '']) => anchor(text));
  const links = [...README.matchAll(/\]\(#([^)]+)\)/g)].map(([, target = '']) => target);
  assert.deepEqual(
    links.filter((target) => !headings.includes(target)),
    [],
  );
});

test('the README lists every file of src in the reading order', () => {
  const listed = tableUnder('Reading order for a reviewer').flatMap(([, names = '']) =>
    [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
  );
  const files = readdirSync(new URL('src', ROOT), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  assert.deepEqual(listed.toSorted(), files.map((name) => name.replaceAll('\\', '/')).sort());
});

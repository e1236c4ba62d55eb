/* Every figure in the comments of .env.example, from which docs/settings.md is made, is that of the code. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STATUSES } from '../../src/gate/replies/refusal-replies.ts';
import { ALGORITHM_NAMES } from '../../src/verify/keys/jwk.ts';
import { REQUIRED as REQUIRED_OPTIONS } from '../../src/verify/options.ts';
import { load, onlyProblem, REQUIRED } from '../settings/every-setting.ts';
import { numberIn, says, word, WORDS } from './constants.ts';
import { read } from './pages.ts';
import { settingsTable } from './settings.ts';
import { rowsOf } from './tables.ts';

const ASSIGNMENT = /^(?:# )?([A-Z_]+)=.*$/m;

interface Comment {
  /** The setting below it, if there is one. */
  readonly name: string;
  readonly text: string;
}

const COMMENTS = read('.env.example')
  .split(/\n{2,}/)
  .map((paragraph): Comment => {
    const text = paragraph.replace(ASSIGNMENT, '').replace(/^# /gm, '').replaceAll('\n', ' ').trim();
    return { name: ASSIGNMENT.exec(paragraph)?.[1] ?? '', text };
  });

type Environment = Readonly<Record<string, string>>;

const OF_INTROSPECTION = {
  IDP_INTROSPECTION: 'opaque',
  IDP_INTROSPECTION_CLIENT_ID: 'orders-api',
  IDP_INTROSPECTION_CLIENT_SECRET: 'x',
};

/** With the settings that it needs. */
const having = (name: string, value: string): Environment => ({
  ...REQUIRED,
  ...(name.startsWith('IDP_INTROSPECTION') ? OF_INTROSPECTION : {}),
  [name]: value,
});

function assertIsRefused(name: string, environment: Environment): void {
  const problem = onlyProblem({ environment });
  assert.match(problem, new RegExp(`^${name}\\b`));
}

/** Such as `0-300`. */
const RANGE = /(?<![\w.-])(\d+)-(\d+)(?![\w.]*[\w-])/g;

const rangesIn = (text: string) =>
  [...text.matchAll(RANGE)].map(([, from, to]) => [Number(from), Number(to)]);

for (const { name, text } of COMMENTS) {
  for (const [from = 0, to = 0] of rangesIn(text)) {
    test(`${name} accepts exactly what its comment says: ${from}-${to}`, () => {
      for (const value of [from, to]) load({ environment: having(name, String(value)) });
      for (const value of [from - 1, to + 1]) assertIsRefused(name, having(name, String(value)));
    });
  }
}

interface Bound {
  readonly pattern: RegExp;
  /** Whether it is the most or the least. */
  readonly isMost: boolean;
  environmentOf(count: number): Environment;
}

const namesOf = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);

const TEMPLATE = { IDP_ISSUER: 'https://idp.test/{tenant}/', IDP_JWKS_URI: 'https://idp.test/keys' };

const BOUNDS: Readonly<Record<string, Bound>> = {
  ISSUERS: {
    pattern: /\bat most ([\d,]+) \(/,
    isMost: true,
    environmentOf: (count) => ({
      ...REQUIRED,
      ISSUERS: namesOf(count).join(','),
      ...Object.fromEntries(
        namesOf(count).flatMap((name) => [
          [`ISSUER_${name.toUpperCase()}_DOMAIN`, `${name}.test`],
          [`ISSUER_${name.toUpperCase()}_AUDIENCE`, 'orders-api'],
        ]),
      ),
    }),
  },
  IDP_TENANTS: {
    pattern: /\bup to ([\d,]+) accepted tenants/,
    isMost: true,
    environmentOf: (count) => ({ ...having('IDP_TENANTS', namesOf(count).join(',')), ...TEMPLATE }),
  },
  IDP_DPOP_NONCE_SECRET: {
    pattern: /\bat least ([\d,]+) characters/,
    isMost: false,
    environmentOf: (count) => having('IDP_DPOP_NONCE_SECRET', 'x'.repeat(count)),
  },
};

const textOf = (name: string) => COMMENTS.find((comment) => comment.name === name)?.text ?? '';

for (const [name, { pattern, isMost, environmentOf }] of Object.entries(BOUNDS)) {
  const [phrase = '', figure = ''] = pattern.exec(textOf(name)) ?? [];

  test(`${name} accepts exactly what its comment says: ${phrase}`, () => {
    const count = Number(figure.replaceAll(',', ''));
    assert.ok(count > 0);
    load({ environment: environmentOf(count) });
    assertIsRefused(name, environmentOf(isMost ? count + 1 : count - 1));
  });
}

/** Those of the comments of a setting, or of comments without one. */
const PHRASES: Readonly<Record<string, readonly string[]>> = {
  '': [says`only these ${word(Object.keys(REQUIRED_OPTIONS).length)} settings`],
  SHUTDOWN_DELAY_SECONDS: [says`/readyz returns ${STATUSES.temporarily_unavailable}.`],
  IDP_DPOP_ALGORITHMS: [says`Default: all ${word(ALGORITHM_NAMES.length)}.`],
  IDP_DPOP_NONCE_SECRET: [
    says`openssl rand -hex ${numberIn('docs/kubernetes.yaml', /openssl rand -hex (\d+)/)}.`,
  ],
  ERROR_DETAIL: [
    says`${STATUSES.invalid_token} invalid_token, ${STATUSES.invalid_dpop_proof} invalid_dpop_proof and ${STATUSES.insufficient_scope} responses`,
  ],
};

for (const [name, phrases] of Object.entries(PHRASES)) {
  for (const phrase of phrases) {
    test(`.env.example says what the code has: ${phrase}`, () => {
      assert.ok(COMMENTS.some((comment) => comment.name === name && comment.text.includes(phrase)));
    });
  }
}

const NONE = ['', 'required'];

/** The defaults in the code, by environment name, as the comments write them. */
const DEFAULTS = new Map(
  rowsOf(settingsTable([])).map(([names = '', value = '']) => {
    const [, name = ''] = /^`([A-Z_]+)`/.exec(names) ?? [];
    return [name, NONE.includes(value) ? 'none' : value.replaceAll('`', '')];
  }),
);

/** Of a setting in the table. */
const defaultOf = (name: string) =>
  name === '' ? undefined : DEFAULTS.get(name.replace('ISSUER_PARTNER', 'IDP'));

/** Without what it adds in parentheses, such as `none (off)`. */
const DEFAULT = /Default: (.*?)(?: \(.*\))?\.$/;

for (const { name, text } of COMMENTS) {
  if (defaultOf(name) === undefined || name === 'IDP_DPOP_ALGORITHMS') continue;

  test(`the comment of ${name} has the default that the code has`, () => {
    assert.equal(DEFAULT.exec(text)?.[1], defaultOf(name));
  });
}

/** A number, but not in a name such as `ES256`, `PKCS #8` or `RFC 9068`. */
const FIGURE = new RegExp(String.raw`(?<![\w#]|RFC )\d[\d,]*|\b(?:${WORDS.slice(1).join('|')})\b`, 'g');

/** The figures that no test above holds. */
function strayFiguresOf({ name, text }: Comment): readonly string[] {
  const bound = BOUNDS[name]?.pattern.exec(text)?.[0] ?? '';
  const known = [...(PHRASES[name] ?? []), bound].reduce((rest, phrase) => rest.replace(phrase, ''), text);
  const isFromZero = rangesIn(text).some(([from]) => from === 0);
  const rest = known
    .replace(defaultOf(name) === undefined ? '' : DEFAULT, '')
    .replace(RANGE, '')
    .replace(isFromZero ? '(0: ' : '', '');
  return rest.match(FIGURE) ?? [];
}

test('a test above holds each figure in the comments of .env.example', () => {
  const stray = COMMENTS.flatMap((comment) =>
    strayFiguresOf(comment).map((figure) => `${comment.name}: ${figure}`),
  );
  assert.deepEqual(stray, []);
});

for (const text of ['0 or more', 'of 5', 'up to 1,000', 'all six', 'Default: 7.', 'a limit (0: none)']) {
  test(`finds a figure that no test holds in: ${text}`, () => {
    assert.notDeepEqual(strayFiguresOf({ name: 'NEW', text }), []);
  });
}

test('finds no figure in names', () => {
  const text = 'RFC 9068 tokens, ES256, PKCS #8, rfc9440 and base64';
  assert.deepEqual(strayFiguresOf({ name: 'NEW', text }), []);
});

/* Changes to texts, JSON members and compact serializations: those that have broken verifiers before, and
   blind ones. */
import type { Members } from './keys.ts';
import type { Random } from './random.ts';

const ATOMS = [
  ' ',
  '  ',
  '\t',
  '\n',
  '\r\n',
  '\0',
  '.',
  '..',
  ',',
  '=',
  '==',
  '-',
  '_',
  '+',
  '/',
  '~',
  '"',
  "'",
  '\\',
  '%',
  '%2e',
  ':',
  ';',
  '{',
  '}',
  '[',
  ']',
  'A',
  'a',
  '0',
  '1',
  '9',
  'e',
  'null',
  'true',
  '\u00a0',
  '\u00e9',
  '\ufeff',
  '\u2028',
  '\u{1f600}',
  'Bearer ',
  'DPoP ',
  'alg',
  'none',
  'e30',
  '__proto__',
];

/** One to three blind changes: insert, delete, replace, double, swap, cut off, change case. */
export function mutateText(random: Random, text: string): string {
  let result = text;
  for (let changes = 1 + random.below(3); changes > 0; changes -= 1) {
    const at = random.below(result.length + 1);
    const before = result.slice(0, at);
    const after = result.slice(at);
    const changed = [
      () => before + random.pick(ATOMS) + after,
      () => before + after.slice(1 + random.below(3)),
      () => before + random.pick(ATOMS) + after.slice(1),
      () => before + after.slice(0, 1 + random.below(8)) + after,
      () => before + after.slice(1, 2) + after.slice(0, 1) + after.slice(2),
      () => before,
      () => before + after.slice(0, 1).toUpperCase() + after.slice(1),
      () => before + after.slice(0, 1).toLowerCase() + after.slice(1),
      () =>
        before + String.fromCharCode((after.charCodeAt(0) || 65) ^ (1 << random.below(7))) + after.slice(1),
    ];
    result = random.pick(changed)();
  }
  return result;
}

export const NOW = 1_800_000_000;

const deep = (depth: number): unknown =>
  Array.from({ length: depth }).reduce((inner) => [inner], 0 as unknown);

const VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  1,
  -1,
  0.5,
  NOW,
  NOW - 1,
  NOW + 1,
  NOW + 0.5,
  NOW * 1000,
  1e300,
  2 ** 53,
  -NOW,
  '',
  ' ',
  '0',
  'null',
  'none',
  'None',
  'RS256',
  'rs256',
  'RS256 ',
  'HS256',
  'RS384',
  'RS512',
  'PS256',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
  'ES256K',
  'JWT',
  'jwt',
  'at+jwt',
  'AT+JWT',
  'application/at+jwt',
  'application/jwt',
  'Application/JWT',
  'application/',
  'dpop+jwt',
  'DPoP+JWT',
  'application/dpop+jwt',
  'JOSE',
  'logout+jwt',
  'secevent+jwt',
  'access',
  'id',
  'Bearer',
  'bearer',
  'DPoP',
  'ID',
  'Refresh',
  'https://idp.test',
  'https://idp.test/',
  'https://IDP.test/',
  'https://idp.test//',
  'https://api.test',
  'https://api.test/',
  'sig',
  'enc',
  'verify',
  'sign',
  ['verify'],
  ['sign'],
  ['verify', 'sign'],
  ['verify', 'verify'],
  ['verify', 1],
  ['encrypt'],
  [],
  {},
  [null],
  [[]],
  [''],
  ['https://api.test'],
  ['https://api.test', 'other'],
  ['other'],
  ['https://api.test', 1],
  [['https://api.test']],
  { 0: 'https://api.test', length: 1 },
  { jkt: 'x' },
  { toString: 'x' },
  ['exp'],
  ['b64'],
  ['alg'],
  ['__proto__'],
  '__proto__',
  'constructor',
  'x'.repeat(300),
  '\u0000',
  '\ud800',
  'é',
  deep(40),
  deep(600),
  'GET',
  'get',
  'GET ',
  'POST',
  'RSA',
  'EC',
  'OKP',
  'oct',
  'P-256',
  'P-384',
  'P-521',
  'Ed25519',
  'X25519',
  'AQAB',
  'Aw',
  'AQ',
];

export const NAMES = [
  'iss',
  'aud',
  'exp',
  'nbf',
  'iat',
  'sub',
  'typ',
  'token_use',
  'events',
  'nonce',
  'at_hash',
  'c_hash',
  'cnf',
  'scope',
  'client_id',
  'jti',
  'htm',
  'htu',
  'ath',
  'alg',
  'kid',
  'crit',
  'b64',
  'jwk',
  'jku',
  'x5c',
  'x5u',
  'cty',
  'zip',
  'use',
  'key_ops',
  'kty',
  'n',
  'e',
  'x',
  'y',
  'crv',
  'd',
  'p',
  'k',
  'oth',
  'ext',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'length',
  '',
];

/** Something else than this value, often close to it. */
export function mutateValue(random: Random, value: unknown): unknown {
  if (random.chance(0.5)) return random.pick(VALUES);
  if (typeof value === 'string') return random.chance(0.2) ? [value] : mutateText(random, value);
  if (typeof value === 'number') {
    return random.pick([value + 1, value - 1, -value, value * 1000, String(value), value + 0.5, [value]]);
  }
  if (Array.isArray(value)) {
    return random.pick([
      [...value, random.pick(VALUES)],
      value[0],
      [...value, ...value],
      value.slice(1),
      [value],
    ]);
  }
  return random.pick(VALUES);
}

/** Changes members in place: one of its own more often than one that it lacks. */
export function mutateMembers(random: Random, members: Members): void {
  const own = Object.keys(members);
  const name = own.length > 0 && random.chance(0.7) ? random.pick(own) : random.pick(NAMES);
  const value = members[name];
  if (random.chance(0.15)) {
    delete members[name];
  } else if (random.chance(0.1)) {
    delete members[name];
    Object.defineProperty(members, mutateText(random, name), {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  } else {
    const changed = mutateValue(random, value);
    Object.defineProperty(members, name, {
      value: changed,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
}

const NUMBERS = [
  '1e999',
  '-1e999',
  '1e-999',
  `${NOW + 60}.0`,
  `${(NOW + 60) / 1000}e3`,
  '01',
  '+1',
  '0x10',
  'NaN',
  'Infinity',
  '9'.repeat(40),
  '-',
  '1.',
];

/** The members as JSON, sometimes in an unusual spelling, with a member repeated, or broken. */
export function spell(random: Random, members: Members): Buffer {
  let text = JSON.stringify(members);
  const name = JSON.stringify(random.pick([...Object.keys(members), random.pick(NAMES)]));
  const spellings = [
    () => JSON.stringify(members, null, random.pick([1, '\t', ' \r\n'])),
    () => `${text.slice(0, -1)},${name}:${JSON.stringify(random.pick(VALUES))}}`,
    () => `{${name}:${JSON.stringify(random.pick(VALUES))},${text.slice(1)}`,
    () => `${text.slice(0, -1)},${name}:${random.pick(NUMBERS)}}`,
    () =>
      text.replace(/[a-z]/g, (letter) =>
        random.chance(0.1) ? `\\u00${letter.charCodeAt(0).toString(16)}` : letter,
      ),
    () => random.pick(['\ufeff', ' ', '\n', '[', '\0']) + text,
    () => text + random.pick(['\ufeff', ' ', '\n', '}', ',', '\0', '{}', ']']),
    () => `[${text}]`,
    () => JSON.stringify(text),
    () => random.pick(['null', '0', '""', '[]', '', '{', 'true']),
    () => mutateText(random, text),
  ];
  if (random.chance(0.25)) text = random.pick(spellings)();
  const bytes = Buffer.from(text);
  if (random.chance(0.03) && bytes.length > 0) bytes[random.below(bytes.length)] = random.below(256);
  return bytes;
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Another spelling of one of the parts, or another number of parts. */
export function mutateCompact(random: Random, text: string): string {
  const parts = text.split('.');
  const index = random.below(parts.length);
  const part = parts[index]!;
  const last = ALPHABET.indexOf(part.slice(-1));
  const changes = [
    () => part + random.pick(['=', '==', 'A', 'AA', 'AAAA', ' ', '\n']),
    () => part.replaceAll('-', '+').replaceAll('_', '/'),
    // Other spare bits in the last character.
    () => part.slice(0, -1) + (ALPHABET[last ^ (1 + random.below(15))] ?? 'A'),
    () => part.slice(0, -1 - random.below(4)),
    () => `${part.slice(0, 4)}${random.pick([' ', '\n', '=', '%', '\u0000', '\u00e9'])}${part.slice(4)}`,
    () => '',
    () => Buffer.from(part, 'base64url').toString('latin1'),
    () => Buffer.from(part).toString('base64url'),
    () => mutateText(random, part),
  ];
  const others = [
    `${text}.`,
    `.${text}`,
    `${text}.e30`,
    parts.slice(0, 2).join('.'),
    parts.toReversed().join('.'),
    part,
  ];
  if (random.chance(0.15)) return random.pick(others);
  parts[index] = random.pick(changes)();
  return parts.join('.');
}

/** One of the ways to change a text that is a compact serialization. */
export const mutateWhole = (random: Random, text: string): string =>
  random.chance(0.6) ? mutateCompact(random, text) : mutateText(random, text);

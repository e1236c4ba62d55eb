/* Spellings that are refused, and spellings that are equivalent, for tests of a function and of the whole
   service. */

/** Equivalent spellings of a path (RFC 3986 §6.2.2), with a query too. */
export const sameSpellings = (path: string): readonly string[] => [
  path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
  `${path}?`,
  `${path}?x=/api/public`,
  `${path}?/../..`,
];

/**
 * Spellings of a path that have no canonical form, or that name another, missing path (RFC 3986 §2.1, §3.3).
 */
export function pathSlips(path: string): readonly string[] {
  const [, first = '', rest = ''] = /^\/([^/]*)(.*)$/.exec(path) ?? [];
  const ends = ['/', '//', '//x', '/.', '/..', '/%2e', '/../public', '/%2e%2e/public', '/x/', '/x//y', '/%'];
  const tails = ['%2Fx', '%2f', ';x', 'x', '%20', '%00', '.', '#', '%', '%c0%af', '%ed%a0%80', '%3Fx'];
  const heads = ['//', '/./', '/../', '/x/../', '/%2e/', '/%2E%2E/', '//evil.example/', '/x/'];
  const inside = rest === '' ? [] : ['//', '/./', '/x/../', '%2F', '%2f', '\\'];
  const slips = [
    ...ends.map((end) => path + end),
    ...tails.map((tail) => path + tail),
    ...heads.map((head) => head + path.slice(1)),
    ...inside.map((between) => `/${first}${between}${rest.slice(1)}`),
    `/${first.toUpperCase()}${rest}`,
    path.replace(/[a-z](?=[^a-z]*$)/, (letter) => letter.toUpperCase()),
  ];
  // Without letters there are no other spellings.
  return slips.filter((slip) => slip !== path);
}

/**
 * Hosts that RFC 9110 §7.2 does not allow, or with an invalid port, or with the escapes and delimiters that RFC 3986
 * §3.2.2 allows in names. Blanks at the ends are not part of a field's value.
 */
export const IMPOSSIBLE_HOSTS: readonly string[] = [
  'a'.repeat(256),
  '',
  'a b',
  'a\tb',
  'a/b',
  'a/',
  '/a',
  'a?b',
  'a#b',
  'a@b',
  'user:pass@a',
  'http://a',
  'a,b',
  'a, a',
  'a;b',
  'a\\b',
  '"a"',
  '<a>',
  '{a}',
  'a|b',
  'a^b',
  'a`b',
  'a!b',
  'a$b',
  'a&b',
  "a'b",
  'a(b)',
  'a*b',
  'a+b',
  'a=b',
  'a%62',
  '%61',
  '\xe9.test',
  'a:b',
  'a:-1',
  'a:+1',
  'a:8o',
  'a:1:2',
  'a:1/',
  'a:65536',
  'a:99999',
  'a:123456',
  'a:000080',
  'a..:99999',
  ':80',
  ':',
  '::1',
  '[::1',
  '::1]',
  '[]',
  '[]:80',
  '[::1]x',
  '[::1]:x',
  '[zz]',
  '[:::]',
  '[1.2.3.4]',
  '[1:2]',
  '[::1%25lo]',
  '[a]b]',
];

/** Valid hosts. */
export const POSSIBLE_HOSTS: readonly string[] = [
  'a'.repeat(255),
  'a',
  'A.b-C_d.example',
  'api.example.',
  'localhost:8080',
  '127.0.0.1',
  '127.0.0.1:1',
  'a:0',
  'ho~st',
  '~',
  'example.com:',
  '[::1]:',
  'a:65535',
  'a:00080',
  '[::1]',
  '[::1]:8080',
  '[2001:DB8::a]',
  '[::ffff:1.2.3.4]:443',
];

/**
 * Changes that make base64url invalid or ambiguous (RFC 7515 §2). The text must have spare bits in its last
 * letter.
 */
export const BASE64URL_MISSPELLINGS: readonly [what: string, misspell: (text: string) => string][] = [
  ['padding', (text) => `${text}=`],
  ['two signs of padding', (text) => `${text}==`],
  ['escaped padding', (text) => `${text}%3D`],
  ['a leading blank', (text) => ` ${text}`],
  ['a trailing blank', (text) => `${text} `],
  ['a blank within', (text) => `${text.slice(0, 4)} ${text.slice(4)}`],
  ['a tab', (text) => `${text.slice(0, 4)}\t${text.slice(4)}`],
  ['a line feed', (text) => `${text}\n`],
  ['a carriage return', (text) => `${text.slice(0, 4)}\r${text.slice(4)}`],
  ['a NUL', (text) => `${text}\0`],
  ['a plus sign', (text) => `${text.slice(0, 4)}+${text.slice(5)}`],
  ['a slash', (text) => `${text.slice(0, 4)}/${text.slice(5)}`],
  ['a length of 1 modulo 4', (text) => `${text}${'A'.repeat((5 - (text.length % 4)) % 4)}`],
  [
    'a spare bit set',
    (text) => text.slice(0, -1) + String.fromCharCode(text.charCodeAt(text.length - 1) + 1),
  ],
  ['a letter beyond ASCII', (text) => `${text.slice(0, -1)}\u0141`],
  ['a full-width letter', (text) => `${text.slice(0, -1)}\uff21`],
  ['a byte-order mark', (text) => `\ufeff${text}`],
  ['a quotation mark', (text) => `"${text}"`],
];

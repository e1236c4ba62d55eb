/* Request targets that servers read in several ways, and many that all read alike. The same seed gives the
   same targets. */

const PIECES = [
  ...[
    'a',
    'B',
    '7',
    'open',
    'secret',
    'api',
    'x',
    '~',
    'index.html',
    'a+b',
    'a,b',
    'a=b',
    '@',
    ':',
    '!',
    "'",
    '(',
    '*',
  ],
  ...[
    '%2f',
    '%2F',
    '%5c',
    '%5C',
    '%2e',
    '%2E',
    '%2e%2e',
    '%252f',
    '%252e',
    '%00',
    '%0a',
    '%0d%0a',
    '%20',
    '%3b',
    '%3f',
  ],
  ...[
    '%23',
    '%25',
    '%41',
    '%7e',
    '%c3%a9',
    '%C3%A9',
    '%e2%82%ac',
    '%c0%af',
    '%c0%ae',
    '%ff',
    '%',
    '%2',
    '%zz',
    '%u002f',
  ],
  ...[
    '.',
    '..',
    '...',
    '..;',
    ';',
    ';a=b',
    '.;',
    '\\',
    '\\..\\',
    '|',
    '"',
    '<',
    '>',
    '^',
    '`',
    '{',
    '}',
    '[',
    ']',
  ],
  ...[
    '\xe9',
    '\xc3\xa9',
    '\xef\xbc\x8f',
    '%ef%bc%8f',
    '%ef%bc%8e',
    '\x01',
    '\x7f',
    '\t',
    '#',
    '#a',
    '&',
    '$',
    'a'.repeat(300),
  ],
];

const JOINS = ['/', '/', '/', '/', '', '//', '/./', '/../', '/%2e%2e/', '/..%2f', '\\', ';/', '/;/', '?/'];

const FIXED = [
  ...[
    '*',
    'http://other.example/open/1',
    'http://other.example',
    'https://api.example/secret/1',
    '//other.example/open',
  ],
  ...[
    '/open/x/..%2F..%2Fsecret%2F1',
    '/open/..;/secret/1',
    '/open/%2e%2e/secret/1',
    '/open/../secret/1',
    '/API/me',
    '/api;x/me',
  ],
  ...[
    '/?/../secret',
    '/open?/../secret',
    '/open/1#/../../secret',
    '/open/1%23',
    '/.',
    '/..',
    '/...',
    '/%2e',
    '/;',
    '/%',
    '',
  ],
  ...[
    '/_gatehouse',
    '/forward-auth',
    '/forward-auth/open/1',
    '/healthz',
    '/readyz',
    '/.well-known/../open/1',
    '/@gate_error',
  ],
  ...[
    `/${'a'.repeat(5_000)}`,
    `/${'a/'.repeat(300)}a`,
    `/${'%41'.repeat(2_000)}`,
    `/${'../'.repeat(50)}secret`,
    `/${'x'.repeat(40_000)}`,
  ],
];

/** Mulberry32. */
function createRandom(seed: number) {
  let state = seed;

  return (below: number) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** The fixed ones first. */
export function targetsOf(count: number, seed = 1): readonly string[] {
  const random = createRandom(seed);
  const oneOf = (list: readonly string[]) => list[random(list.length)] ?? '';

  const made = Array.from({ length: count }, () => {
    const parts = Array.from(
      { length: 1 + random(5) },
      () => oneOf(JOINS) + oneOf(PIECES) + (random(3) ? '' : oneOf(PIECES)),
    );
    const query = random(6) === 0 ? `?${oneOf(PIECES)}/../${oneOf(PIECES)}` : '';
    return `/${parts.join('').replace(/^\//, '')}${query}`;
  });
  return [...FIXED, ...made].slice(0, count);
}

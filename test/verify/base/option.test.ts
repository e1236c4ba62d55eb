/* Options in code: every wrong value of each is refused by name, and none is silently ignored. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { createGate, createService } from '../../../src/gatehouse.ts';
import { GATE_RULES, OF_SERVICE, readGateOptions } from '../../../src/gate/options.ts';
import { readServiceOptions, SERVICE_RULES } from '../../../src/service/options.ts';
import { listOf, oneOf, readOptions, text, textWithoutBlanks } from '../../../src/verify/base/option.ts';
import { clientCertificates } from '../../../src/certificates.ts';
import { cors } from '../../../src/cors.ts';
import { jsonLog } from '../../../src/log.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { throughProxy } from '../../../src/proxy.ts';
import { redisReplayStore } from '../../../src/redis.ts';
import { createRevocations } from '../../../src/revocations.ts';
import { resourceMetadata } from '../../../src/resource-metadata.ts';
import { tenants } from '../../../src/tenants.ts';

const SERVICE_NAMES = Object.keys(OF_SERVICE);

const GIVEN = { domain: 'idp.test', audience: 'https://api.test' };

const TENANTS = { issuer: 'https://a.test/{tenant}', list: ['a'] };

/** What reading these options throws. */
function problemOf(given: unknown): string {
  try {
    readServiceOptions(given as never);
    return 'none';
  } catch (error) {
    assert.ok(error instanceof TypeError);
    return error.message;
  }
}

const NUMBER = 'must be a whole number from ';
const NO_PLAIN_OBJECT = 'must be a plain object with a member for each option, not an instance of a class';
const NO_TEXT = 'is empty, or has white space or a NUL; remove it';
const NO_LIST = 'must be a list of 1 or more texts';

const BRACES =
  'may have braces only as {tenant}, once, as a whole segment of the path of an issuer with tenants';

const NO_BRACE = 'must have no brace without the option tenants; write it as the provider shows it';
const ISSUER = 'must be a URL that begins with https://, without white space, "@", "#", "?", "{" or "}"';
const ALGORITHMS = 'must be one of ES256, ES384, ES512, EdDSA, PS256, RS256';

/** Wrong values of each option, and the problem. */
const WRONG: Readonly<Record<string, readonly (readonly [value: unknown, problem: string])[]>> = {
  domain: [
    ['https://idp.test', 'has a scheme; remove "https://" and keep the host name'],
    [new URL('https://idp.test'), 'must be text'],
  ],
  audience: [
    [['a', ''], NO_TEXT],
    [[, 'a'], 'must be text'],
    ['a,\nb', NO_TEXT],
  ],
  issuer: [
    ['http://idp.test/', ISSUER],
    ['https://idp.test/{tenant}/', ISSUER],
    ['https://idp.test/a}', ISSUER],
  ],
  jwksUri: [
    [new URL('https://idp.test/keys'), 'must be text'],
    ...['{tenant}/keys', 'keys?t={tenant}', '{tenantid}/keys', '{/keys', 'keys}'].map(
      (path) => [`https://idp.test/${path}`, NO_BRACE] as const,
    ),
  ],
  claimNamespace: [
    ['claims/', 'must be the beginning of a URL, such as https://api.example.com/, without white space'],
  ],
  scopeClaim: [['a b', NO_TEXT]],
  tokenType: [['AT+JWT', 'must be one of any, at+jwt']],
  algorithms: [
    [['RS256', 'none'], ALGORITHMS],
    ['RS256,PS256', NO_LIST],
    [['rs256'], ALGORITHMS],
    [new Set(['RS256']), NO_LIST],
  ],
  requiredClaims: [
    ['scp', 'must be a list of 0 or more texts'],
    [[, 'scp'], 'must be text'],
    [[Object.create(null)], 'must be text'],
  ],
  issuers: [
    'partner',
    () => {},
    new Map([['partner', GIVEN]]),
    Object.create({ partner: GIVEN }),
    Object.defineProperty({}, 'partner', { value: GIVEN }),
    { [Symbol('partner')]: GIVEN },
  ].map((value) => [value, 'must be an object with the options of each issuer under its name']),
  dpopMode: [
    ['required', 'must be one of DISABLED, ALLOWED, REQUIRED'],
    [Promise.resolve('REQUIRED'), 'must be one of DISABLED, ALLOWED, REQUIRED'],
  ],
  dpopIatOffsetSeconds: [['300', `${NUMBER}0 to 1000000000`]],
  dpopIatLeewaySeconds: [[-1, `${NUMBER}0 to 1000000000`]],
  dpopAlgorithms: [[['ES256K'], ALGORITHMS]],
  dpopNonceSecret: [['short', 'must have at least 32 characters']],
  tokenCacheEntries: [[1_000_001, `${NUMBER}0 to 1000000`]],
  clockToleranceSeconds: [[0.5, `${NUMBER}0 to 300`]],
  publicUrl: [
    [
      'https://api.test/?x',
      'must be a URL that begins with https:// or http://, in ASCII, without blanks, braces, "@", "#" or "?"',
    ],
  ],
  trustProxy: [['true', 'must be true or false']],
  replayStore: [
    [
      'redis://store.test',
      'must be a function, or a part that redisReplayStore(url) makes, of the same copy of the package',
    ],
  ],
  clientCertificates: [
    [
      { source: 'tls' },
      'must be a part that clientCertificates({ source }) makes, of the same copy of the package',
    ],
  ],
  connect: [[() => {}, 'must be a part that throughProxy(url) makes, of the same copy of the package']],
  keyAccess: [
    [
      { caFile: 'x' },
      'must be a part that keyAccess({ tokenFile, caFile }) makes, of the same copy of the package',
    ],
  ],
  tenants: [
    [{ list: ['a'] }, 'must be a part that tenants({ issuer, list }) makes, of the same copy of the package'],
  ],
  introspection: [
    [
      { tokens: ['jwt'] },
      'must be a part that introspection({ tokens, clientId }) makes, of the same copy of the package',
    ],
  ],
  fetchKeys: [[{}, 'must be a function']],
  introspect: [[{}, 'must be a function']],
  errorDetail: [[1, 'must be true or false']],
  errorDocsUrl: [
    'http://a.test',
    'x-https://a.test',
    'https://a.test/?b',
    'https://a.test/#b',
    'https://a.test/"',
    'https://a.test/\\b',
    'https://a b.test',
    'https://a.test/b c',
    'https://a.test/é',
  ].map((url) => [url, 'must be a URL that begins with https://, without "?", "#", a quote or a backslash']),
  log: [
    [
      { level: 'info' },
      'must be a function, or a part that jsonLog() makes, of the same copy of the package',
    ],
  ],
  revocations: [
    [
      'redis://store.test',
      'must be a part that createRevocations({ store }) makes, of the same copy of the package',
    ],
  ],
  metadata: [
    [
      'https://api.test',
      'must be a part that resourceMetadata({ url }) makes, of the same copy of the package',
    ],
  ],
  cors: [[{ origins: [] }, 'must be a part that cors({ origins }) makes, of the same copy of the package']],
  metrics: [[true, 'must be a part that createMetrics() makes, of the same copy of the package']],
  onError: [['log', 'must be a function']],
  onVerdict: [[() => {}, 'is an option of createGate alone; use onResponse']],
  onResponse: [[true, 'must be a function']],
  port: [
    [65_536, `${NUMBER}0 to 65535`],
    ['80', `${NUMBER}0 to 65535`],
    [NaN, `${NUMBER}0 to 65535`],
  ],
  host: [['', NO_TEXT]],
  bodyLimitBytes: [[0, `${NUMBER}1 to 16777216`]],
  handlerTimeoutSeconds: [[3_601, `${NUMBER}0 to 3600`]],
  requestTimeoutSeconds: [[0, `${NUMBER}1 to 3600`]],
  shutdownDelaySeconds: [[61, `${NUMBER}0 to 60`]],
};

test('has wrong values of every option', () => {
  assert.deepEqual(Object.keys(WRONG).sort(), Object.keys(SERVICE_RULES).sort());
});

for (const [name, cases] of Object.entries(WRONG)) {
  test(`refuses a wrong ${name} in code, says how to write it, and does not show it [§11]`, () => {
    for (const [value, problem] of cases) {
      const told = problemOf({ ...GIVEN, [name]: value });
      assert.equal(told, `${name}: ${problem}`);
      if ([...SERVICE_NAMES, 'onVerdict'].includes(name)) continue;
      assert.throws(() => createGate({ ...GIVEN, [name]: value }), { name: 'TypeError', message: told });
    }
  });

  test(`refuses null, empty text and an empty list as ${name} [§11]`, () => {
    for (const value of [null, '', ...(name === 'requiredClaims' ? [] : [[]])]) {
      const told = problemOf({ ...GIVEN, [name]: value });
      assert.ok(told.startsWith(`${name}: `), `${JSON.stringify(value)}: ${told}`);
    }
  });

  test(`takes undefined as ${name} for absent`, () => {
    const isRequired = name === 'domain' || name === 'audience';
    const told = problemOf({ ...GIVEN, [name]: undefined });
    assert.match(told, isRequired ? new RegExp(`^${name}: .*is required`) : /^none$/);
  });
}

test('refuses what is no object, and names what every gate needs', () => {
  for (const given of [undefined, null, 'idp.test', 5, () => {}, [], ['idp.test']]) {
    assert.equal(problemOf(given), 'options: must be an object with a member for each option');
  }
  assert.equal(problemOf({}), 'domain: the issuer base URL is required; set this to its host name');
  assert.equal(
    problemOf({ domain: 'idp.test' }),
    'audience: the audience is required; set this to the identifier of this API at the provider',
  );
});

test('refuses an unknown name, and shows the spelling of one that differs in case [§11]', () => {
  for (const [name, problem] of [
    ['dpopmode', 'is no option; write dpopMode or remove it'],
    ['corsAllowedOrigins', 'is no option; correct or remove it'],
    ['toString', 'is no option; correct or remove it'],
    [Symbol('port'), 'is no option; correct or remove it'],
    ...['profile', 'orgId', 'scopePolicy', 'applicationName', 'logLevel', 'dpopReplayStore', 'proxy'].map(
      (of) => [of, 'is no option; correct or remove it'] as const,
    ),
  ] as const) {
    assert.equal(problemOf({ ...GIVEN, [name]: 'x' }), `${String(name)}: ${problem}`);
  }
  assert.equal(problemOf(JSON.parse('{ "__proto__": 1 }')), '__proto__: is no option; correct or remove it');
});

test('takes an unknown name that is undefined for absent', () => {
  assert.equal(problemOf({ ...GIVEN, nothing: undefined }), 'none');
  assert.doesNotThrow(() => readGateOptions({ ...GIVEN, port: undefined } as never));
});

test('refuses an option that is inherited or not enumerable, which a copy would lose [H2]', () => {
  class Own {
    readonly domain = 'idp.test';
    readonly audience = 'https://api.test';

    get dpopMode() {
      return 'REQUIRED';
    }
  }

  const lost = 'is inherited or not enumerable; write it as a member of the object itself';
  assert.equal(problemOf(Object.create(GIVEN)), `domain: ${lost}`);
  assert.equal(problemOf(new Own()), `dpopMode: ${lost}`);
  const hidden = Object.defineProperty({ ...GIVEN }, 'dpopMode', { value: 'REQUIRED' });
  assert.equal(problemOf(hidden), `dpopMode: ${lost}`);
});

test('refuses a wrong onVerdict in a gate, and says how to write it [§11]', () => {
  const message = 'onVerdict: must be a function';
  for (const onVerdict of [null, 'log', {}]) {
    assert.throws(() => createGate({ ...GIVEN, onVerdict } as never), { name: 'TypeError', message });
  }
});

for (const name of SERVICE_NAMES) {
  test(`refuses ${name}, which only a service uses, in a gate [§28]`, () => {
    assert.throws(() => createGate({ ...GIVEN, [name]: 1 }), {
      name: 'TypeError',
      message: `${name}: is an option of createService alone; remove it here`,
    });
  });
}

test('refuses in a gate every option that a service alone has', () => {
  const ofService = Object.keys(SERVICE_RULES).filter((name) => !(name in GATE_RULES));
  assert.deepEqual(ofService.sort(), [...SERVICE_NAMES].sort());
});

test('reads each option once, and its lists as they were then [§11]', () => {
  const reads: string[] = [];
  const audience = ['https://api.test'];
  const given = new Proxy(
    { ...GIVEN, audience, algorithms: ['ES256', 'ES256'] },
    {
      get: (target, name) => {
        reads.push(String(name));
        return Reflect.get(target, name);
      },
    },
  );
  const values = readGateOptions(given as never).issuers.idp!;
  assert.equal(reads.length, new Set(reads).size);

  audience.push('https://other.test');
  assert.deepEqual(values.audience, ['https://api.test']);
  assert.deepEqual(values.algorithms, ['ES256']);
  for (const list of [values.audience, values.algorithms]) assert.ok(Object.isFrozen(list));
});

test('checks the copy of a list that it keeps, not what the list gives later', () => {
  let count = 0;
  const shifty = new Proxy(['a'], {
    get: (target, name) => {
      count += name === '0' ? 1 : 0;
      return name === '0' && count > 1 ? 'b c' : Reflect.get(target, name);
    },
  });
  const rules = { names: listOf(textWithoutBlanks) };
  assert.deepEqual(readOptions({ names: shifty }, rules, {}), { names: ['a'] });
});

test('gives a public URL without its last slash, and one audience as a list', () => {
  const values = readGateOptions({ ...GIVEN, publicUrl: 'https://api.test/v1/' });
  assert.equal(values.publicUrl, 'https://api.test/v1');
  assert.deepEqual(values.issuers.idp?.audience, ['https://api.test']);
});

test('refuses options that do not fit each other', () => {
  const replayStore = redisReplayStore('redis://store.test');
  for (const [given, problem] of [
    [{ replayStore, dpopMode: 'DISABLED' }, 'replayStore: has no effect while the DPoP mode is DISABLED; '],
    [{ replayStore: () => true, dpopMode: 'DISABLED' }, 'replayStore: has no effect while the DPoP mode is'],
    [{ metrics: createMetrics({ port: 81 }), port: 81 }, 'metrics: port: is the port of the service itself'],
  ] as const) {
    const told = problemOf({ ...GIVEN, ...given });
    assert.ok(told.startsWith(problem), told);
  }
  const metrics = createMetrics({ port: 81 });
  assert.throws(() => createGate({ ...GIVEN, metrics }), {
    message: 'metrics: have a port, but a gate does not listen; leave it out, and serve what text() returns',
  });
});

test('refuses metadata whose URL has another origin than the public URL [RFC 9728 §3.3]', () => {
  const problem =
    'metadata: url: must be https:// (http:// on loopback), with the origin of the public URL, ';
  for (const [url, isGood] of [
    ['https://api.test/mcp', true],
    ['https://other.test', false],
    ['https://api.test:8443', false],
  ] as const) {
    const metadata = resourceMetadata({ url });
    const told = problemOf({ ...GIVEN, metadata, publicUrl: 'https://api.test/v1' });
    assert.equal(told.startsWith(problem), !isGood, url);
  }
});

for (const [what, make, problem] of [
  ['cors', () => cors({ origins: ['*'] }), 'cors: origins: must be an origin as browsers send it'],
  ['cors', () => cors({} as never), 'cors: origins: are missing; list those whose pages may read'],
  ['cors', () => cors({ origins: [] }), `cors: origins: ${NO_LIST}`],
  ['cors', () => cors({ origins: ['https://a.test'], methods: ['get'] }), 'cors: methods: must be a method'],
  [
    'cors',
    () => cors({ origins: ['https://a.test'], methods: ['GET\n'] }),
    'cors: methods: must be a method',
  ],
  ['cors', () => cors({ origins: ['https://a.test'], max: 1 } as never), 'cors: max: is no option; '],
  ...(
    [
      [{}, 'source: is missing; set where certificates come from'],
      [{ source: 'TLS' }, 'source: must be one of tls, rfc9440, pem, base64, xfcc'],
      [{ source: 'tls', field: 'X-Cert' }, 'field: has no effect with tls, which reads no field; remove it'],
      [
        { source: 'tls', proxies: ['::1'] },
        'proxies: has no effect with tls, which reads no field; remove it',
      ],
      [{ source: 'pem' }, 'proxies: is missing; list the addresses of the proxies that send the field'],
      [{ source: 'pem', proxies: '192.0.2.1' }, 'proxies: must be a list of IP addresses and CIDR ranges'],
      [{ source: 'pem', proxies: [] }, 'proxies: must be a list of IP addresses and CIDR ranges'],
      [{ source: 'pem', proxies: ['any'] }, 'proxies: must be a list of IP addresses and CIDR ranges'],
      [{ source: 'pem', proxies: [, '::1'] }, 'proxies: must be a list of IP addresses and CIDR ranges'],
      [{ source: 'pem', proxies: [['::1']] }, 'proxies: must be a list of IP addresses and CIDR ranges'],
      [{ source: 'pem', proxies: 'any', required: 'true' }, 'required: must be true or false'],
      [{ source: 'pem', proxies: 'any', field: 'X_Cert' }, 'field: must be the name of a header field, of'],
      [{ source: 'pem', proxies: 'any', field: '' }, 'field: must be the name of a header field, of'],
      [{ source: 'pem', proxies: 'any', field: 'X.Cert' }, 'field: must be the name of a header field, of'],
      [{ source: 'pem', proxies: 'any', max: 1 }, 'max: is no option; '],
    ] as const
  ).map(([given, problem]) => {
    const make = () => clientCertificates(given as never);
    return ['client certificates', make, `clientCertificates: ${problem}`] as const;
  }),
  ...(
    [
      [{ list: ['a'] }, 'issuer: is missing; write the issuers (iss) of the tenants, with {tenant} as one'],
      [{ issuer: 'https://a.test/{tenant}' }, "list: is missing; list the tenants, or write ['*'] for every"],
      [{ ...TENANTS, issuer: 'https://a.test/x' }, 'issuer: must have {tenant} as one whole segment of its'],
      [{ ...TENANTS, issuer: 'http://a.test/{tenant}' }, 'issuer: must be a URL that begins with https://,'],
      [{ ...TENANTS, issuer: 'https://a.test/{tenant}?x' }, 'issuer: must be a URL that begins with'],
      ...[
        'https://{tenant}/',
        'https://{tenant}.a.test/',
        'https://a.test/x{tenant}',
        'https://a.test/{tenant}x',
        'https://a.test/{tenant}/{tenant}',
        'https://a.test/{tenant}/{x}',
        'https://a.test/{tenantid}/v2.0',
        'https://a.test/{Tenant}',
        'https://a.test/{{tenant}}',
        'https://a.test/{tenant}/}',
      ].map((issuer) => [{ ...TENANTS, issuer }, `issuer: ${BRACES}`] as const),
      ...[
        'a',
        [],
        ['*', 'a'],
        ['a', '*'],
        [''],
        ['-a'],
        ['.'],
        ['a/b'],
        ['a b'],
        ['a\n'],
        ['a%2f'],
        ['{tenant}'],
        ['ä'],
        ['a'.repeat(65)],
        [7],
        [['a']],
        [, 'a'],
        Array.from({ length: 1_001 }, (_, index) => `t${index}`),
      ].map((list) => [{ ...TENANTS, list }, 'list: must be a list of 1 to 1,000 tenants, each'] as const),
      [{ ...TENANTS, claim: 'a b' }, 'claim: is empty, or has white space or a NUL; remove it'],
      [
        { ...TENANTS, authorizationServer: 'http://a.test' },
        'authorizationServer: must be a URL that begins',
      ],
      [{ ...TENANTS, authorizationServer: TENANTS.issuer }, `authorizationServer: ${ISSUER}`],
      [{ ...TENANTS, tenantClaim: 'tid' }, 'tenantClaim: is no option; '],
    ] as const
  ).map(([given, problem]) => {
    return ['tenants', () => tenants(given as never), `tenants: ${problem}`] as const;
  }),
  ['a log', () => jsonLog({ level: 'INFO' as never }), 'log: level: must be one of silent, error, warn, '],
  ['a log', () => jsonLog({ access: 'true' as never }), 'log: access: must be true or false'],
  ['a log', () => jsonLog(null as never), `log: ${NO_PLAIN_OBJECT}`],
  ['a log', () => jsonLog(new Map([['level', 'debug']]) as never), `log: ${NO_PLAIN_OBJECT}`],
  ['metrics', () => createMetrics(new Map([['port', 9_464]]) as never), `metrics: ${NO_PLAIN_OBJECT}`],
  ['metrics', () => createMetrics({ port: 0 }), `metrics: port: ${NUMBER}1 to 65535`],
  ['metrics', () => createMetrics({ host: '' }), 'metrics: host: is empty, or has white space'],
  ['metadata', () => resourceMetadata({ url: 'x' }), 'resourceMetadata: url: must be a URL that begins'],
  ['metadata', () => resourceMetadata({} as never), 'resourceMetadata: url: is missing; write the '],
  [
    'metadata',
    () => resourceMetadata({ url: 'https://api.test', scopes: ['openid'] }),
    'resourceMetadata: scopes: must be a scope of this API',
  ],
  [
    'metadata',
    () => resourceMetadata({ url: 'https://api.test', scopes: [] }),
    `resourceMetadata: scopes: ${NO_LIST}`,
  ],
  [
    'metadata',
    () => resourceMetadata({ url: 'https://api.test', name: '' }),
    'resourceMetadata: name: is empty; write it or remove it',
  ],
  [
    'a proxy',
    () => throughProxy('https://proxy.test'),
    'throughProxy: must be http://[user[:password]@]host',
  ],
  ['a proxy', () => throughProxy(undefined as never), 'throughProxy: must be text'],
  ['revocations', () => createRevocations({} as never), 'revocations: store: is missing; set the URL'],
  ['revocations', () => createRevocations({ store: 'store.test' }), 'revocations: store: must be redis://'],
  [
    'revocations',
    () => createRevocations({ store: 'redis://store.test', domain: 'https://idp.test' }),
    'revocations: domain: has a scheme; remove "https://" and keep the host name',
  ],
  [
    'revocations',
    () => createRevocations({ store: 'redis://store.test', issuers: { partner: { domain: 'idp.test' } } }),
    'revocations: domain: is required to know the issuer',
  ],
  [
    'revocations',
    () => createRevocations({ store: 'redis://store.test', domain: 'idp.test', issuers: { partner: {} } }),
    'revocations: issuers.partner: domain: the issuer base URL is required',
  ],
  ['a replay store', () => redisReplayStore('store.test'), 'redisReplayStore: must be redis://'],
] as const) {
  test(`refuses a wrong option where ${what} is made: ${problem} [§11]`, () => {
    assert.throws(make, (error) => error instanceof TypeError && error.message.startsWith(problem));
  });
}

test('createService has a line for each problem of its routes', () => {
  const served = { routes: ['x', 'y'], more: 1 } as never;
  assert.throws(
    () => createService(served, GIVEN),
    (error) => {
      assert.ok(error instanceof TypeError);
      assert.equal(error.message.split('\n').length > 2, true);
      return true;
    },
  );
});

test('takes no list of one word for the word, and no hole in a list for a text', () => {
  assert.equal(oneOf('a', 'b')(['a']), 'must be one of a, b');
  assert.equal(listOf(text)(new Array(1)), 'must be text');
});

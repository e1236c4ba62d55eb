/* Client certificates: each form of a field, whose field counts, and which certificate confirms a token. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { clientCertificates } from '../../src/certificates.ts';
import { authenticated, createGate, createService, get, open } from '../../src/gatehouse.ts';
import { CERTIFICATE_RULES } from '../../src/options/certificates/certificates.ts';
import { makeIssuer } from '../support/issuer.ts';
import { Part } from '../../src/verify/base/option.ts';
import {
  client,
  confirmOf,
  escaped,
  FIELDS,
  otherClient,
  outcomeOf,
  SOURCES,
  written,
  type FieldSource,
} from './certificates-fixture.ts';

const { der, hex, thumbprint } = client;
const base64 = der.toString('base64');
const lines = base64.replace(/.{1,64}/g, '$&\n');
const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';

const pem = (body: string, begin = `${BEGIN}\n`, end = `${END}\n`) => escaped(begin + body + end);

/** Values of each form that have the certificate of `client`. */
const GOOD: Readonly<Record<FieldSource, readonly string[]>> = {
  rfc9440: [`:${base64}:`],
  pem: [
    pem(lines),
    escaped(client.pem),
    // As Apache escapes it.
    client.pem.replaceAll(' ', '%20').replaceAll('\n', '%0a'),
    pem(lines, `${BEGIN}\n`, END),
    pem(`${base64}\n`),
    pem(base64.replace(/./g, '$&\n')),
    pem(`\n${lines}\n`),
    pem(lines.replaceAll('\n', '\r\n'), `${BEGIN}\r\n`, `${END}\r\n`),
    pem(lines).replaceAll('%2B', '+').replaceAll('%2F', '/').replaceAll('%3D', '='),
    pem(lines).replace(/%../g, (escape) => escape.toLowerCase()),
    pem(lines).replaceAll('-', '%2D'),
    pem(lines) + escaped(otherClient.pem),
    `${pem(lines)}junk`,
    `${pem(lines)}%FF%00`,
    `${pem(lines)}(*)`,
  ],
  base64: [
    base64,
    `${base64},${otherClient.der.toString('base64')}`,
    `${base64},`,
    `${base64}, x`,
    `${base64},,`,
  ],
  xfcc: [
    `Hash=${hex}`,
    `hash=${hex.toUpperCase()}`,
    `HASH="${hex}"`,
    `By=;Hash=${hex}`,
    `Hash=${hex};Subject="CN=a;Hash=${'0'.repeat(64)},O=b"`,
    `Hash=${hex};Subject="CN=\\"a\\",Hash=b\\\\"`,
    `Subject="";Hash=${hex};URI=spiffe://a.test/b?c=d`,
    `Hash=${hex};Cert="${escaped(client.pem)}";Chain="x"`,
    `By=a b;Hash=${hex}`,
    `Unknown=\\;Hash=${hex}`,
  ],
};

/** Values that are not of the form. */
const BAD: Readonly<Record<FieldSource, readonly string[]>> = {
  rfc9440: [
    base64,
    `:${base64}`,
    `${base64}:`,
    `::`,
    ':',
    `: ${base64}:`,
    `:${base64} :`,
    `:${base64}:;a=b`,
    `:${base64}:, :${base64}:`,
    `"${base64}"`,
    `:${der.toString('base64url')}:`,
    `:${base64}=:`,
    `:${base64}====:`,
    ':Y2VydA:',
    ':Y2VydA=:',
    ':Y2VydB==:',
    ':Y2Vy dA==:',
    ':Y2Vy\tdA==:',
    ':{http.request.tls.client.certificate_der_base64}:',
  ],
  pem: [
    client.pem.replaceAll('\n', ' '),
    client.pem,
    base64,
    pem(''),
    pem('\n'),
    pem(lines, `${BEGIN} `),
    pem(lines, BEGIN),
    pem(lines, `\n${BEGIN}\n`),
    pem(lines, `x${BEGIN}\n`),
    pem(lines, `Subject: a\n${BEGIN}\n`),
    pem(lines, `${BEGIN}\n`, ''),
    pem(lines.trimEnd()),
    pem(lines, `-----BEGIN TRUSTED CERTIFICATE-----\n`, `-----END TRUSTED CERTIFICATE-----\n`),
    pem(lines, `-----BEGIN PUBLIC KEY-----\n`, `-----END PUBLIC KEY-----\n`),
    pem(lines, `-----begin certificate-----\n`),
    pem(lines.replaceAll('\n', '\r')),
    pem(` ${lines}`),
    pem(lines.replace('\n', ' \n')),
    pem(lines.replace('A', '_')),
    pem(`${lines}====\n`),
    pem('Y2VydB==\n'),
    pem('Y2VydA\n'),
    pem(lines).replaceAll('%20', ' '),
    pem(lines).replaceAll('%20', '+'),
    `${pem(lines)}%`,
    `${pem(lines)}%4`,
    `${pem(lines)}%zz`,
    `${pem(lines)},${pem(lines)}`,
    `${pem(lines)}, ${pem(lines)}`,
    `,${pem(lines)}`,
    `${pem(lines)} x`,
    escaped(pem(lines)),
  ],
  base64: [
    `:${base64}:`,
    ` ${base64}`,
    `${base64} ,x`,
    `,${base64}`,
    ',',
    `${base64}\n`,
    der.toString('base64url'),
    'Y2VydA',
    'Y2VydB==',
    escaped(base64),
    'A',
  ],
  xfcc: [
    hex,
    `Hash=`,
    `Hash`,
    `=${hex}`,
    `Hash=${hex.slice(1)}`,
    `Hash=${hex}0`,
    `Hash=${hex.replace(/./, 'g')}`,
    `Hash="${hex}`,
    `Hash=${hex}"`,
    `Hash="${hex}"x`,
    `Hash="\\${hex}"`,
    `Hash=${hex};Hash=${hex}`,
    `Hash=${hex};hash=${otherClient.hex}`,
    `Hash=${hex};Hash=`,
    `Hash=${hex},Hash=${otherClient.hex}`,
    `Hash=${hex},By=a`,
    `By=a,Hash=${hex}`,
    `Hash=${hex},`,
    `,Hash=${hex}`,
    `Hash=${hex};`,
    `;Hash=${hex}`,
    `By=a;;Hash=${hex}`,
    `By=a; Hash=${hex}`,
    `By=a ;Hash=${hex}`,
    `By= a;Hash=${hex}`,
    `Hash=${hex}; By=a`,
    `Hash=${hex};a"b=c`,
    `Hash=${hex};=c`,
    `a,b=c;Hash=${hex}`,
    `Hash= ${hex}`,
    `Hash =${hex}`,
    ` Hash=${hex}`,
    `Hash=${hex} `,
    `By=a"b;Hash=${hex}`,
    `By="a;Hash=${hex}`,
    `By="a"b;Hash=${hex}`,
    `By="a\\";Hash=${hex}`,
    'By=spiffe://cluster.local/ns/a',
  ],
};

for (const source of SOURCES) {
  const options = { source, proxies: ['192.0.2.1'] };

  describe(`the source ${source}`, () => {
    test('accepts the named certificate in each way that proxies write it [RFC 8705 §3.1]', () => {
      for (const value of GOOD[source]) {
        assert.equal(outcomeOf(options, thumbprint, [value]), 'accepted', value);
      }
    });

    test('reads the same of a Node request without a peer address, as over a Unix socket', () => {
      for (const value of GOOD[source]) {
        const outcome = outcomeOf({ source, proxies: 'any' }, thumbprint, [value], {});
        assert.equal(outcome, 'accepted', value);
      }
    });

    test('refuses another certificate in each way [RFC 8705 §3]', () => {
      for (const value of GOOD[source]) {
        assert.equal(outcomeOf(options, otherClient.thumbprint, [value]), 'certificate-mismatch', value);
      }
    });

    test('refuses what is not of its form [J1]', () => {
      for (const value of BAD[source]) {
        assert.equal(outcomeOf(options, thumbprint, [value]), 'certificate-malformed', value);
      }
    });

    test('refuses the form of every other source [J1]', () => {
      for (const other of SOURCES.filter((each) => each !== source)) {
        const value = written(other, der);
        assert.equal(outcomeOf(options, thumbprint, [value]), 'certificate-malformed', other);
      }
    });

    test('treats a missing or empty field as no certificate, from any sender', () => {
      for (const values of [[], ['']]) {
        for (const remoteAddress of ['192.0.2.1', '192.0.2.2', undefined]) {
          const outcome = outcomeOf(options, thumbprint, values, { remoteAddress });
          assert.equal(outcome, 'certificate-missing');
        }
      }
    });

    test('refuses a repeated field, empty ones too [J1]', () => {
      const value = written(source, der);
      for (const values of [
        [value, value],
        [value, ''],
        ['', value],
        ['', ''],
      ]) {
        assert.equal(outcomeOf(options, thumbprint, values), 'certificate-malformed');
      }
    });

    test('refuses the field of any other sender, whatever it contains [RFC 9440 §4, J1]', () => {
      const value = written(source, der);
      for (const values of [[value], ['x'], [value, value], ['', '']]) {
        const outcome = outcomeOf(options, thumbprint, values, { remoteAddress: '192.0.2.2' });
        assert.equal(outcome, 'certificate-untrusted');
      }
    });

    test('reads the field of another name in its place, in any letter case', () => {
      const given = { ...options, field: 'X-Own-Cert' };
      assert.equal(outcomeOf(given, thumbprint, [written(source, der)]), 'accepted');
      const lower = { ...options, field: FIELDS[source].toLowerCase() };
      assert.equal(outcomeOf(lower, thumbprint, [written(source, der)]), 'accepted');
      const confirm = confirmOf(given);
      const rawHeaders = [FIELDS[source], written(source, der), 'x-own_cert', written(source, der)];
      const facts = {
        method: 'GET',
        host: 'a',
        path: '/',
        rawHeaders,
        socket: { remoteAddress: '192.0.2.1' },
      };
      assert.equal(
        confirm({ 'x5t#S256': thumbprint }, 'Bearer', facts)?.refusal.reason,
        'certificate-missing',
      );
    });
  });
}

test('takes what the documentation of Envoy, Istio and Traefik shows, and of two clients none [J1]', () => {
  const envoy = { source: 'xfcc', proxies: 'any' } as const;
  const subject = 'Subject="/C=US/ST=CA/L=San Francisco/OU=Lyft/CN=Test Client"';
  const one = `By=http://front.test;Hash=${hex};${subject};URI=http://client.test`;
  const mesh = `By=spiffe://cluster.local/ns/a/sa/b;Hash=${hex};Subject="";URI=spiffe://cluster.local/ns/c/sa/d`;
  for (const value of [one, `${one};DNS=client.test;DNS=www.client.test`, mesh]) {
    assert.equal(outcomeOf(envoy, thumbprint, [value]), 'accepted', value);
  }
  const second = `By=http://back.test;Hash=${otherClient.hex};URI=http://front.test`;
  for (const named of [client, otherClient]) {
    assert.equal(outcomeOf(envoy, named.thumbprint, [`${one},${second}`]), 'certificate-malformed');
  }
  // Istio's HTTP ext_authz may send an element without Hash.
  const alone = 'By=spiffe://cluster.local/ns/a/sa/b';
  assert.equal(outcomeOf(envoy, thumbprint, [alone]), 'certificate-malformed');

  const traefik = { source: 'base64', proxies: 'any' } as const;
  const chain = [base64, otherClient.der.toString('base64')].join(',');
  assert.equal(outcomeOf(traefik, thumbprint, [chain]), 'accepted');
  assert.equal(outcomeOf(traefik, otherClient.thumbprint, [chain]), 'certificate-mismatch');
});

test('hashes the bytes as they came, where a parser would drop those behind the certificate [J1]', () => {
  const longer = Buffer.concat([der, Buffer.from([0])]);
  for (const source of ['rfc9440', 'pem', 'base64'] as const) {
    const options = { source, proxies: 'any' as const };
    assert.equal(outcomeOf(options, thumbprint, [written(source, longer)]), 'certificate-mismatch');
  }
});

test('refuses a field of over 16 KiB, and reads one of 16 KiB', () => {
  const options = { source: 'base64', proxies: 'any' } as const;
  const [exact, over] = [16_384, 16_385].map((length) => `${base64},`.padEnd(length, 'x'));
  assert.equal(outcomeOf(options, thumbprint, [exact ?? '']), 'accepted');
  assert.equal(outcomeOf(options, thumbprint, [over ?? '']), 'certificate-malformed');
});

test('passes a token without a named certificate unless one is required, and then reads no field', () => {
  for (const values of [[], [written('pem', der)], ['x']]) {
    for (const proxies of ['any', ['192.0.2.9']] as const) {
      const options = { source: 'pem', proxies } as const;
      assert.equal(outcomeOf(options, undefined, values), 'accepted');
      assert.equal(outcomeOf({ ...options, required: true }, undefined, values), 'certificate-required');
    }
  }
});

describe('the source tls', () => {
  const socketWith = (certificate: unknown) => ({ getPeerX509Certificate: () => certificate });

  test('compares the certificate of the socket, and reads no field [RFC 8705 §3.1]', () => {
    const forged = [written('rfc9440', der)];
    for (const [socket, outcome] of [
      [socketWith({ raw: der }), 'accepted'],
      [socketWith({ raw: otherClient.der }), 'certificate-mismatch'],
      [socketWith(undefined), 'certificate-missing'],
      [socketWith({ raw: Buffer.alloc(0) }), 'certificate-missing'],
      [socketWith({ raw: der.toString('latin1') }), 'certificate-missing'],
      [{ remoteAddress: '127.0.0.1' }, 'certificate-missing'],
      [undefined, 'certificate-missing'],
      [null, 'certificate-missing'],
    ] as const) {
      assert.equal(outcomeOf({ source: 'tls' }, thumbprint, forged, socket), outcome);
    }
  });

  test('asks the socket once for a bound token, and not for another', () => {
    let asked = 0;
    const socket = {
      getPeerX509Certificate() {
        assert.equal(this, socket);
        asked += 1;
        return { raw: der };
      },
    };
    assert.equal(outcomeOf({ source: 'tls' }, undefined, [], socket), 'accepted');
    assert.equal(asked, 0);
    assert.equal(outcomeOf({ source: 'tls' }, thumbprint, [], socket), 'accepted');
    assert.equal(asked, 1);
  });
});

/** Entries, peers in them, and peers that are not. */
const RANGES: readonly (readonly [
  entries: readonly string[],
  inside: readonly string[],
  outside: readonly string[],
])[] = [
  [
    ['192.0.2.1'],
    ['192.0.2.1', '::ffff:192.0.2.1', '::FFFF:c000:201', '0:0:0:0:0:ffff:c000:0201'],
    ['192.0.2.2', '::192.0.2.1', '::c000:201', '::ffff:0:192.0.2.1', '192.0.2.10', '64:ff9b::192.0.2.1'],
  ],
  [
    ['10.0.0.0/8'],
    ['10.0.0.0', '10.255.255.255', '::ffff:10.1.2.3'],
    ['11.0.0.0', '9.255.255.255', 'a00::', '::a00:1'],
  ],
  [['192.0.2.128/25'], ['192.0.2.128', '192.0.2.255'], ['192.0.2.127', '192.0.3.128']],
  [['192.0.2.4/31'], ['192.0.2.4', '192.0.2.5'], ['192.0.2.3', '192.0.2.6']],
  [['192.0.2.7/32'], ['192.0.2.7'], ['192.0.2.6', '192.0.2.8']],
  [['0.0.0.0/0'], ['0.0.0.0', '255.255.255.255', '::ffff:1.2.3.4'], ['::', '::1', '2001:db8::1']],
  [['::/0'], ['::', '::1', 'ffff::', 'fe80::1%eth0'], ['1.2.3.4', '::ffff:1.2.3.4', '0.0.0.0']],
  [['::1'], ['::1', '0:0:0:0:0:0:0:1', '::1%lo'], ['::', '127.0.0.1', '::2', '::ffff:0.0.0.1']],
  [['2001:DB8::/32'], ['2001:db8::', '2001:db8:ffff::1'], ['2001:db9::', '2001:db7::', '32.1.13.184']],
  [['2001:db8::8/125'], ['2001:db8::8', '2001:db8::f'], ['2001:db8::7', '2001:db8::10']],
  [['2001:db8:0:1::/64'], ['2001:db8:0:1:ffff::'], ['2001:db8:0:2::', '2001:db8::1']],
  [['fe80::/10'], ['fe80::1%eth0', 'fe80::1', 'febf::1%2'], ['fec0::1%eth0']],
  [['2001:db8::192.0.2.1'], ['2001:db8::c000:201'], ['192.0.2.1']],
  [['1:2:3:4:5:6:7:8'], ['1:2:3:4:5:6:7:8', '0001:2:3:4:5:6:7:8'], ['1:2:3:4:5:6:7:9']],
  [['1:2:3:4:5:6:7::'], ['1:2:3:4:5:6:7:0'], ['1:2:3:4:5:6:7:1']],
  [
    ['192.0.2.1', '10.0.0.0/8', '::1'],
    ['192.0.2.1', '10.9.9.9', '::1'],
    ['192.0.2.2', '::2'],
  ],
];

for (const [proxies, inside, outside] of RANGES) {
  test(`counts the field of a peer in ${proxies.join(', ')}, and of no other [J1]`, () => {
    const options = { source: 'base64', proxies } as const;
    for (const remoteAddress of inside) {
      assert.equal(outcomeOf(options, thumbprint, [base64], { remoteAddress }), 'accepted', remoteAddress);
    }
    for (const remoteAddress of outside) {
      const outcome = outcomeOf(options, thumbprint, [base64], { remoteAddress });
      assert.equal(outcome, 'certificate-untrusted', remoteAddress);
    }
  });
}

test('counts the field of a peer without address only with any [J1]', () => {
  const everybody = ['0.0.0.0/0', '::/0'];
  for (const socket of [undefined, null, {}, { remoteAddress: undefined }, { remoteAddress: '' }, 'socket']) {
    assert.equal(
      outcomeOf({ source: 'base64', proxies: everybody }, thumbprint, [base64], socket ?? null),
      'certificate-untrusted',
    );
    assert.equal(
      outcomeOf({ source: 'base64', proxies: 'any' }, thumbprint, [base64], socket ?? null),
      'accepted',
    );
  }
});

test('takes no field that may be two joined ones from a request without a socket, as adapters make it [J1]', () => {
  const values = [`${base64}, ${base64}`, `${base64},`, `${base64}, `];
  for (const value of values) {
    const outcomes = [null, {}].map((socket) =>
      outcomeOf({ source: 'base64', proxies: 'any' }, thumbprint, [value], socket),
    );
    assert.deepEqual(outcomes, ['certificate-malformed', 'accepted'], value);
  }
});

const WRONG_PROXIES =
  'must be a list of IP addresses and CIDR ranges, each without a zone, not IPv4-mapped, and without bits ' +
  'beyond its prefix; or the one word any, if only the proxy can connect';

const proxiesProblem = (value: unknown) => CERTIFICATE_RULES.proxies(value);

test('refuses what is no address or range, is mapped or zoned, or has bits beyond its prefix', () => {
  for (const entry of [
    '',
    'any',
    'localhost',
    '192.0.2',
    '192.0.2.256',
    '192.0.02.1',
    '192.0.2.1/33',
    '192.0.2.1/',
    '192.0.2.0/024',
    '192.0.2.0/-1',
    '192.0.2.0/24/24',
    '192.0.2.1/24',
    '10.0.0.1/8',
    '10.0.0.1/0',
    ' 192.0.2.1',
    '192.0.2.1 ',
    '192.0.2.1:80',
    '[::1]',
    '::1%lo',
    'fe80::1%eth0',
    'fe80::%eth0/10',
    '::ffff:192.0.2.1',
    '::ffff:0:0/96',
    '0:0:0:0:0:FFFF:c000:201',
    '::1/129',
    '::1/127',
    '2001:db8::1/64',
    '2001:db8::/31x',
    '::g',
    '1:2:3:4:5:6:7:8:9',
    '192.0.2.1\n',
  ]) {
    assert.equal(proxiesProblem([entry]), WRONG_PROXIES, entry);
    assert.equal(proxiesProblem(['::1', entry]), WRONG_PROXIES, entry);
  }
  for (const value of [[], [['::1']], new Set(['::1']), '::1', null]) {
    assert.equal(proxiesProblem(value), WRONG_PROXIES);
  }
});

test('refuses as a field what is no name, or has another meaning', () => {
  const { field: rule } = CERTIFICATE_RULES;
  const taken = 'Authorization DPoP Host Cookie Connection Content-Length Transfer-Encoding'.split(' ');
  const forwarded = ['Method', 'Uri', 'Proto', 'Host', 'For'].map((each) => `X-Forwarded-${each}`);
  for (const name of [...taken, ...forwarded, 'X_Cert', 'X Cert', 'X-Cert:', 'É', 'X-Cert\n']) {
    for (const spelled of [name, name.toLowerCase(), name.toUpperCase()]) {
      assert.equal(
        rule(spelled),
        'must be the name of a header field, of letters, digits and hyphens, that has no other meaning here',
      );
    }
  }
  for (const name of [
    'X-Client-Cert',
    'SSL-Client-Cert',
    'x-forwarded-client-cert',
    'Cookies',
    'Host-1',
    '1',
  ]) {
    assert.equal(rule(name), undefined);
  }
});

test('says which option is missing or has no effect, and what to do', () => {
  for (const [given, problem] of [
    [{}, 'source: is missing; set where certificates come from'],
    [{ source: 'tls', field: 'A' }, 'field: has no effect with tls, which reads no field; remove it'],
    [{ source: 'tls', proxies: 'any' }, 'proxies: has no effect with tls, which reads no field; remove it'],
    [{ source: 'pem' }, 'proxies: is missing; list the addresses of the proxies that send the field'],
  ] as const) {
    const expected = new TypeError(`clientCertificates: ${problem}`);
    assert.throws(() => clientCertificates(given as never), expected);
  }
});

test('refuses to serve a service from TLS, and to require certificates where no Bearer token is accepted', () => {
  const { options } = makeIssuer();
  const served = { routes: [get('/a', open, () => ({}))] };
  assert.throws(
    () => createService(served, { ...options, clientCertificates: clientCertificates({ source: 'tls' }) }),
    {
      name: 'TypeError',
      message:
        'clientCertificates: source: must not be tls, since a service offers no TLS; choose the form that your proxy writes, such as rfc9440',
    },
  );
  const required = clientCertificates({ source: 'tls', required: true });
  assert.throws(() => createGate({ ...options, dpopMode: 'REQUIRED', clientCertificates: required }), {
    name: 'TypeError',
    message:
      'clientCertificates: required: has no effect while the DPoP mode is REQUIRED, which accepts no Bearer token; remove it',
  });
  createGate({ ...options, dpopMode: 'ALLOWED', clientCertificates: required }).close();
});

test('reads its list of proxies once: a later change has no effect [§11]', () => {
  const proxies = ['192.0.2.1'];
  const confirm = confirmOf({ source: 'base64', proxies });
  proxies.push('192.0.2.2');
  const rawHeaders = [FIELDS.base64, base64];
  const facts = { method: 'GET', host: 'a', path: '/', rawHeaders, socket: { remoteAddress: '192.0.2.2' } };
  assert.equal(confirm({ 'x5t#S256': thumbprint }, 'Bearer', facts)?.refusal.reason, 'certificate-untrusted');
});

test('names the form and the field that count, for the line `listening` (docs/certificates.md)', () => {
  const shownBy = (source: FieldSource, field?: string) =>
    Part.contentOf(clientCertificates({ source, field, proxies: 'any' })).source;

  assert.equal(shownBy('rfc9440'), 'rfc9440 Client-Cert');
  assert.equal(shownBy('pem', 'X-Certificate'), 'pem X-Certificate');
  assert.equal(Part.contentOf(clientCertificates({ source: 'tls' })).source, 'tls');
});

for (const source of SOURCES) {
  test(`refuses two fields of a Fetch Request, which joins them, whichever comes first: ${source} [J1]`, async () => {
    const issuer = makeIssuer();
    const options = { source, proxies: 'any' as const };
    const gate = createGate({ ...issuer.options, clientCertificates: clientCertificates(options) });
    const authorization = `Bearer ${issuer.token({ cnf: { 'x5t#S256': client.thumbprint } })}`;

    const reasonFor = async (...values: string[]) => {
      const headers = new Headers({ authorization });
      for (const value of values) headers.append(FIELDS[source], value);
      const { refusal } = await gate.check(new Request('http://a.test/', { headers }), authenticated);
      return /error_description="([^"]*)"/.exec(String(refusal?.headers))?.[1];
    };

    const unreadable = 'the client certificate that the proxy passed on cannot be read';
    const [mine, other] = [client.der, otherClient.der].map((der) => written(source, der)) as [
      string,
      string,
    ];
    assert.equal(await reasonFor(mine), undefined);
    assert.equal(await reasonFor(mine, other), unreadable);
    assert.equal(await reasonFor(other, mine), unreadable);
    // The first is a list, as Traefik writes one.
    assert.equal(await reasonFor(`${mine},AAAA`, other), unreadable);
    // The constructor of Request trims what is joined.
    for (const values of [
      [mine, ''],
      ['', mine],
      [`${mine},AAAA`, ''],
      ['', ''],
    ]) {
      assert.equal(await reasonFor(...values), unreadable, values.join(' and '));
    }
    gate.close();
  });
}

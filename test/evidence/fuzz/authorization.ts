/* Authorization values: how gatehouse reads the fields and then the token, against the grammar of the RFCs
   and the others. */
import { verifiedOf } from '../../../src/verify/token/verify.ts';
import { parseCredentials, type DpopMode } from '../../../src/verify/request/facts.ts';
import { atOnce } from '../../support/clock.ts';
import { unlessRefused } from '../../support/refused.ts';
import { mutateText } from './mutations.ts';
import { judged, refused, spelled, type Outcome, type Verdict } from './outcome.ts';
import type { Random } from './random.ts';
import { anyToken, GOOD_TOKENS, judgeByOthers, newVerifier } from './tokens.ts';

const MODES: readonly DpopMode[] = ['DISABLED', 'ALLOWED', 'REQUIRED'];

const SCHEMES = [
  'Bearer',
  'bearer',
  'BEARER',
  'DPoP',
  'dpop',
  'DPOP',
  'Basic',
  'Bearer,',
  'Bearer:',
  'Bear',
  'Bearers',
  '',
  'DPoP-Bearer',
  '"Bearer"',
];

const SEPARATORS = [
  ' ',
  ' ',
  ' ',
  ' ',
  '  ',
  '',
  '\t',
  ' \t',
  '\u00a0',
  ',',
  ' ,',
  ', ',
  ':',
  '=',
  ' token=',
];

const NAMES = [
  'Authorization',
  'authorization',
  'AUTHORIZATION',
  'Proxy-Authorization',
  'Authorization ',
  'X-Authorization',
  'DPoP',
  'dpop',
  'DPOP',
];

function value(random: Random): string {
  const token = random.chance(0.7) ? random.pick(GOOD_TOKENS) : anyToken(random, 0.1);
  const text =
    random.pick(SCHEMES.slice(0, random.chance(0.7) ? 6 : undefined)) + random.pick(SEPARATORS) + token;
  if (random.chance(0.15)) return mutateText(random, text);
  const endings = [' ', ',', ', ', ', Bearer x', ' x', '=', '==', '\t', `,${token}`, ', realm="x"'];
  return random.chance(0.2) ? text + random.pick(endings) : text;
}

/** Names and values in turn, as node:http gives them. */
function rawHeadersFrom(random: Random): string[] {
  const fields = [
    ['Host', 'api.test'],
    [random.chance(0.9) ? random.pick(NAMES.slice(0, 3)) : random.pick(NAMES), value(random)],
  ];
  if (random.chance(0.15)) fields.push([random.pick(NAMES), random.chance(0.5) ? value(random) : '']);
  if (random.chance(0.25)) {
    fields.push([random.pick(NAMES.slice(6)), random.pick(['proof', '', 'a.b.c', 'a, b'])]);
  }
  return fields.flat() as string[];
}

/** RFC 6750 §2.1 (b64token), RFC 9449 §7.1, RFC 9110 §11.1. */
const CREDENTIALS = /^(bearer|dpop) ([A-Za-z0-9._~+/-]+=*)$/i;

interface Reading {
  readonly scheme: string;
  readonly token: string;
  readonly proof: string | undefined;
}

/** The credentials by the grammar, or nothing. */
function readByGrammar(rawHeaders: readonly string[], mode: DpopMode): Reading | undefined {
  const fields = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name.toLowerCase(), rawHeaders[index + 1]!] as const] : [],
  );
  const values = (wanted: string) => fields.filter(([name]) => name === wanted).map(([, text]) => text);
  const authorization = values('authorization');
  const proofs = values('dpop');
  const match = CREDENTIALS.exec(authorization[0] ?? '');
  if (authorization.length !== 1 || match === null) return undefined;
  const scheme = match[1]!.toLowerCase() === 'dpop' ? 'DPoP' : 'Bearer';
  if ((mode === 'DISABLED' && scheme === 'DPoP') || (mode === 'REQUIRED' && scheme === 'Bearer')) {
    return undefined;
  }
  if (mode !== 'DISABLED' && proofs.length > 1) return undefined;
  return { scheme, token: match[2]!, proof: mode === 'DISABLED' ? undefined : proofs[0] };
}

const withReading = ({ scheme, proof }: Reading, claims: string) =>
  `${scheme} ${spelled(proof ?? null)} ${claims}`;

export async function fuzzAuthorization(random: Random): Promise<Outcome> {
  const mode = random.pick(MODES);
  const rawHeaders = rawHeadersFrom(random);
  const input = { mode, rawHeaders };
  let isAnonymous = false;
  const ours = judged(() => {
    const credentials = unlessRefused(parseCredentials(rawHeaders, mode));
    isAnonymous = credentials === undefined;
    if (credentials === undefined) return '';
    const verified = unlessRefused(atOnce(newVerifier()(credentials.token)));
    return withReading(credentials, spelled(verifiedOf(verified).claims));
  });
  const reading = readByGrammar(rawHeaders, mode);
  if (reading === undefined) {
    const verdict = refused('not credentials by the grammar of RFC 6750 §2.1 and RFC 9449 §7.1');
    return {
      input,
      ours: isAnonymous ? refused('no-credentials') : ours,
      others: { jose: verdict, 'fast-jwt': verdict },
    };
  }
  const others = Object.entries(await judgeByOthers(reading.token)).map(
    ([name, verdict]): [string, Verdict] => [
      name,
      verdict.accepted ? { ...verdict, reading: withReading(reading, verdict.reading) } : verdict,
    ],
  );
  return { input, ours: isAnonymous ? refused('no-credentials') : ours, others: Object.fromEntries(others) };
}

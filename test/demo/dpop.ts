/* What the demo shows of bound tokens (RFC 9449): a program makes the key and the proofs, because curl
   cannot. */
import { fileURLToPath } from 'node:url';
import { shellLine, type Block, type Section } from './examples.ts';

const PROGRAM = fileURLToPath(new URL('dpop-call.mjs', import.meta.url));

const INVALID_PROOF = '{"error":"invalid_dpop_proof","message":"Authentication required"}';
const INVALID_TOKEN = '{"error":"invalid_token","message":"Authentication required"}';

/** What the program does with the token that it got, and what comes of it. */
const WAYS = [
  [
    '',
    200,
    '{"message":"Hello from a private endpoint!"',
    'the token is bound to a key, and a proof comes with it',
  ],
  ['--replay', 401, INVALID_PROOF, 'the proof has been used before'],
  ['--other-key', 401, INVALID_TOKEN, 'the proof is by another key, as after a theft of the token'],
  ['--bearer', 401, INVALID_TOKEN, 'the token is bound, and a bearer shows no proof'],
] as const;

/** Calls with a key, a bound token and a proof of the program's own. */
export const boundCalls: Section = async ({ provider, clients, origin }) =>
  clients
    .filter(({ id }) => id === 'alice')
    .flatMap(({ id, secret }) =>
      WAYS.map(([way, status, body, why]): Block => {
        const options = way === '' ? [] : [way];
        const words = [
          PROGRAM,
          ...options,
          provider.authorityFile,
          `${provider.issuer}oauth/token`,
          id,
          secret,
          provider.audience,
          `${origin}/api/private`,
        ];
        return {
          route: 'GET /api/private',
          status,
          why: `${id}: ${why}`,
          line: shellLine('node', ...words),
          body,
        };
      }),
    );

/* The README on refusals, errors, logs and the modes of DPoP, held against src. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { anyScope, claimCheck, claimEquals, claimIncludes, scope } from '../../src/routes/guards.ts';
import { createRefusalReplies } from '../../src/reply/challenge.ts';
import { createLog, LOG_LEVELS, type FetchFlaw, type KeyFlaw, type Log } from '../../src/base/events.ts';
import {
  HTTP_REFUSALS,
  PROOF_FLAWS,
  REQUEST_FLAWS,
  TOKEN_FLAWS,
  UNAVAILABILITIES,
  type Refusal,
} from '../../src/base/refusal.ts';
import type { DpopMode } from '../../src/sender/credentials.ts';
import { readReply } from '../support/reply.ts';
import { startProvider, type Provider } from '../idp/provider.ts';
import { startService, type TestService } from '../support/service.ts';
import { code, README, tablesUnder, tableUnder } from './tables.ts';

const modes: readonly DpopMode[] = ['DISABLED', 'ALLOWED', 'REQUIRED'];
const FLAWS = [
  '401 `invalid_token`',
  '401 `invalid_dpop_proof` and `use_dpop_nonce`',
  '400 `invalid_request`',
] as const;
const asCode = (words: readonly string[]) => words.map(code).sort();

test('the README has every error_description with its reason', () => {
  const sentences = (heading: string, index?: number) =>
    Object.fromEntries(
      tableUnder(heading, index).map(([sentence, reason = '']) => [reason.slice(1, -1), sentence]),
    );
  assert.deepEqual(sentences(FLAWS[0]), { ...TOKEN_FLAWS });
  const rules = { dpopMode: 'REQUIRED', errorDetail: false } as const;
  const { headers } = readReply(
    createRefusalReplies(rules)({ kind: 'use_dpop_nonce', reason: 'proof-nonce' }, 'DPoP'),
  );
  const nonce = /error_description="([^"]+)"/.exec(headers[1] ?? '')?.[1];
  assert.deepEqual(sentences(FLAWS[1]), { ...PROOF_FLAWS, 'proof-nonce': nonce });
  assert.deepEqual(sentences(FLAWS[2]), { ...REQUEST_FLAWS });
  assert.deepEqual(sentences('Errors', 1), { ...UNAVAILABILITIES, ...HTTP_REFUSALS });
});

test('the README says in every row of the flaws what to do', () => {
  for (const heading of FLAWS) {
    assert.deepEqual(
      tableUnder(heading).filter(([, , advice = '']) => advice.length < 5),
      [],
    );
  }
});

test('the README lists the flaws of a token in the order in which they are found', () => {
  assert.deepEqual(
    tableUnder('401 `invalid_token`').map(([, reason]) => reason),
    Object.keys(TOKEN_FLAWS).map(code),
  );
});

test('the README has every kind of guard with what it says', () => {
  const guards = [
    scope('x'),
    anyScope('x'),
    claimEquals('<name>', 'x'),
    claimIncludes('<name>', ['x']),
    claimCheck('<what>', () => true),
  ];
  const said = guards.map(({ refused: { refusal } }) =>
    'description' in refusal ? refusal.description.replace(/<\w+>/, code) : '',
  );
  assert.deepEqual(
    tableUnder('403 `insufficient_scope`').map(([sentence]) => sentence),
    said,
  );
});

test('the README has every error with its status and its detailed body', () => {
  const insufficient = { kind: 'insufficient_scope', description: '<sentence>' } as const;
  const kinds: Readonly<Record<Refusal['kind'], readonly Refusal[]>> = {
    invalid_request: [{ kind: 'invalid_request', reason: 'host-refused' }],
    unauthorized: [{ kind: 'unauthorized', reason: 'no-credentials' }],
    invalid_token: [{ kind: 'invalid_token', reason: 'expired' }],
    invalid_dpop_proof: [{ kind: 'invalid_dpop_proof', reason: 'proof-htm' }],
    use_dpop_nonce: [{ kind: 'use_dpop_nonce', reason: 'proof-nonce' }],
    insufficient_scope: [
      { ...insufficient, reason: 'scope-missing', scopes: ['<scope>'] },
      { ...insufficient, reason: 'claim-missing' },
    ],
    not_found: [{ kind: 'not_found', reason: 'not_found' }],
    method_not_allowed: [{ kind: 'method_not_allowed', reason: 'method_not_allowed' }],
    request_timeout: [{ kind: 'request_timeout', reason: 'request_timeout' }],
    expectation_failed: [{ kind: 'expectation_failed', reason: 'expectation_failed' }],
    header_fields_too_large: [{ kind: 'header_fields_too_large', reason: 'header_fields_too_large' }],
    temporarily_unavailable: [
      { kind: 'temporarily_unavailable', reason: 'keys-unavailable', retryAfterSeconds: 1 },
    ],
  };
  const expected = Object.values(kinds)
    .flat()
    .map((refusal) => {
      const [plain, detailed] = [false, true].map((errorDetail) =>
        createRefusalReplies({ dpopMode: 'ALLOWED', errorDetail })(refusal, 'Bearer'),
      );
      const [before, detail = ''] = [plain?.text, detailed?.text];
      return [String(plain?.status), code(refusal.kind), before === detail ? 'the same' : code(detail)];
    });
  const written = tableUnder('Errors').map(([status, error, , detail]) => [status, error, detail]);
  assert.deepEqual(written, [...expected, ['500', '`server_error`', 'the same']]);
});

test('the README has the challenges of every mode', () => {
  const fields = modes.map((dpopMode) =>
    readReply(
      createRefusalReplies({ dpopMode, errorDetail: false })(
        { kind: 'unauthorized', reason: 'no-credentials' },
        undefined,
      ),
    )
      .headers.join(': ')
      .replaceAll(': WWW-Authenticate', '\nWWW-Authenticate')
      .replace(/^/gm, '    '),
  );
  assert.ok(README.includes(fields.join('\n\n')), fields.join('\n\n'));
});

test('the README has every log message with its level', () => {
  const messages: Readonly<Record<Parameters<Log>[0], 0>> = {
    'address or port cannot be had': 0,
    'signing keys expired': 0,
    'memory of used proofs full': 0,
    'request failed': 0,
    'unforeseen failure': 0,
    'log lines dropped': 0,
    'unknown setting ignored': 0,
    'signing key skipped': 0,
    'signing keys could not be fetched': 0,
    'signing keys loaded': 0,
    'requests refused': 0,
    listening: 0,
    'shutting down': 0,
    stopped: 0,
    'request refused': 0,
  };
  const lines: { message: string; level: string }[] = [];
  const log = createLog(
    LOG_LEVELS.at(-1) ?? 'silent',
    (line) => lines.push(JSON.parse(line)),
    () => 0,
  );
  for (const message of Object.keys(messages)) log(message as Parameters<Log>[0], {});
  const written = tableUnder('Logs').map(([message, level]) => [message, level]);
  assert.deepEqual(
    written,
    lines.map(({ message, level }) => [code(message), level]),
  );
});

test('the README has the reasons why keys are not fetched or not used', () => {
  const fetchFlaws: Readonly<Record<FetchFlaw, 0>> = {
    timeout: 0,
    'name-not-resolved': 0,
    'connection-refused': 0,
    'connection-failed': 0,
    'certificate-refused': 0,
    'status-refused': 0,
    'redirect-refused': 0,
    'too-large': 0,
    'not-a-json-object': 0,
    'issuer-mismatch': 0,
    'address-refused': 0,
    'not-a-key-set': 0,
    'too-many-keys': 0,
    'no-usable-key': 0,
    unforeseen: 0,
  };
  const keyFlaws: Readonly<Record<KeyFlaw, 0>> = {
    'not-an-object': 0,
    'key-type': 0,
    'private-member': 0,
    'key-id': 0,
    use: 0,
    'key-operations': 0,
    algorithm: 0,
    encoding: 0,
    size: 0,
    exponent: 0,
    'not-importable': 0,
    'key-id-repeated': 0,
  };
  const [, fetching = [], skipping = []] = tablesUnder('Logs');
  assert.deepEqual(fetching.map(([reason]) => reason).sort(), asCode(Object.keys(fetchFlaws)));
  assert.deepEqual(skipping.map(([reason]) => reason).sort(), asCode(Object.keys(keyFlaws)));
});

describe('the README on the eight combinations of RFC 9449 §7', () => {
  let provider: Provider;
  before(async () => {
    provider = await startProvider();
  });
  after(() => provider.stop());

  for (const [column, IDP_DPOP_MODE] of modes.entries()) {
    test(`it says what the mode ${IDP_DPOP_MODE} answers`, async (context) => {
      const service: TestService = await startService({ provider, environment: { IDP_DPOP_MODE } });
      context.after(() => service.stop());
      const rows = tableUnder('DPoP', 1);
      assert.equal(rows.length, 8);
      for (const [scheme, header, bound, ...cells] of rows) {
        const token = provider.issue(bound === 'yes' ? { cnf: { jkt: 'x'.repeat(43) } } : {});
        const headers = { Authorization: `${scheme} ${token}`, ...(header === 'yes' ? { DPoP: 'x' } : {}) };
        const { status, body } = await service.ask('/api/private', { headers });
        const answer = body.error === undefined ? String(status) : `${status} ${code(body.error)}`;
        // A proof that decides is at fault here.
        assert.equal(
          answer,
          cells[column]?.replace('the proof decides', '401 `invalid_dpop_proof`'),
          `${scheme} ${header} ${bound}`,
        );
      }
    });
  }
});

/* Texts that could keep a pattern busy, wherever a request brings text. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { normalUri } from '../../src/request/uri.ts';
import { parseCredentials } from '../../src/sender/credentials.ts';
import { callerWith } from '../support/caller.ts';
import { issue, verdict } from '../token/issuer.ts';

const LONG = 16_000;

const adversarial = [
  'a'.repeat(LONG),
  ' '.repeat(LONG),
  'a.'.repeat(LONG / 2),
  '%'.repeat(LONG),
  '%41'.repeat(LONG / 4),
  '/'.repeat(LONG),
  '[:'.repeat(LONG / 2),
];

test(
  'answers texts of 16,000 characters that are meant to keep a pattern busy [C10]',
  { timeout: 60_000 },
  async () => {
    for (const text of adversarial) {
      for (const ending of ['', '!', '\0']) {
        for (const start of ['Bearer ', 'Bearer', 'DPoP ', '']) {
          assert.throws(() => {
            const credentials = parseCredentials(['Authorization', `${start}${text} ${ending} x`], 'ALLOWED');
            assert.equal(credentials, undefined);
          });
        }
        for (const start of ['https://', 'https://a/', 'https://a:', 'https://[', '']) {
          normalUri(`${start}${text}${ending}`);
        }
        assert.notEqual(await verdict(issue({ aud: text + ending, scope: text + ending })), 'accepted');
        assert.deepEqual(callerWith({ scope: `${text}${ending} read` }).scopes.includes('read'), true);
      }
    }
  },
);

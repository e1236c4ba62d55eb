/* Texts that could keep a pattern busy, in every part of a request. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { readJson } from '../../../src/service/routes/body.ts';
import { normalUri, parseCredentials } from '../../../src/verify/request/facts.ts';
import { callerWith } from '../../support/caller.ts';
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
  '"'.repeat(LONG),
  ';"'.repeat(LONG / 2),
  ';\\"'.repeat(LONG / 3),
  '; charset=utf-8'.repeat(LONG / 16),
];

/** The reason for refusing a body of this type. The limit of 0 bytes keeps it from being read. */
async function refusalOf(type: string) {
  const request = { headers: { 'content-length': '1' }, rawHeaders: ['Content-Type', type] };
  const failure: unknown = await readJson({ request } as never, ['application/json'], 0).catch(
    (refused: unknown) => refused,
  );
  assert.ok(failure instanceof Refused);
  return failure.refusal.reason;
}

test(
  'takes little time for strings of 16,000 characters that are meant to make a regular expression backtrack [C10]',
  { timeout: 60_000 },
  async () => {
    for (const text of adversarial) {
      for (const ending of ['', '!', '\0']) {
        for (const start of ['Bearer ', 'Bearer', 'DPoP ', '']) {
          const rawHeaders = ['Authorization', `${start}${text} ${ending} x`];
          assert.ok(Refused.is(parseCredentials(rawHeaders, 'ALLOWED')));
        }
        for (const start of ['https://', 'https://a/', 'https://a:', 'https://[', '']) {
          normalUri(`${start}${text}${ending}`);
        }
        for (const start of ['', ';', ';charset=', '; a="', '; charset', ';charset="']) {
          const reason = await refusalOf(`application/json${start}${text}${ending};charset=utf-8`);
          assert.match(reason, /^(body-too-large|media-type-refused|charset-refused)$/);
        }
        assert.notEqual(await verdict(issue({ aud: text + ending, scope: text + ending })), 'accepted');
        assert.deepEqual(callerWith({ scope: `${text}${ending} read` }).scopes.includes('read'), true);
      }
    }
  },
);

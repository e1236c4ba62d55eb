/* docs/dpop.md and the clauses of docs/how-a-request-is-checked.md, compared with the running service and the
   code. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { REFUSALS } from '../../src/verify/base/refusal.ts';
import { clausesIn, commentsOf } from '../clauses/citations.ts';
import { startProvider, type Provider } from '../idp/provider.ts';
import { startService } from '../support/service.ts';
import { filesBelow } from '../support/tree.ts';
import { codeIn, read, ROOT, tableUnder } from './pages.ts';

describe('docs/dpop.md on the eight combinations of RFC 9449 §7', () => {
  const rows = tableUnder('docs/dpop.md', 'Scheme, proof and binding');
  let provider: Provider;

  before(async () => {
    provider = await startProvider();
  });

  after(() => provider.stop());

  for (const [column, IDP_DPOP_MODE] of ['DISABLED', 'ALLOWED', 'REQUIRED'].entries()) {
    test(`says how the mode ${IDP_DPOP_MODE} responds`, async (context) => {
      const service = await startService({ provider, environment: { IDP_DPOP_MODE } });
      context.after(() => service.stop());
      assert.equal(rows.length, 8);
      for (const [scheme, field, bound, ...cells] of rows) {
        const token = provider.issue(bound === 'yes' ? { cnf: { jkt: 'x'.repeat(43) } } : {});
        const proof: Record<string, string> = field === 'yes' ? { DPoP: 'x' } : {};
        const headers = { Authorization: `${scheme} ${token}`, ...proof };
        const { status, body } = await service.ask('/api/private', { headers });
        const response = body.error === undefined ? `${status}` : `${status} \`${body.error}\``;
        // Where the document says that the response depends on the proof, this test sends an invalid proof.
        const expected = cells[column]?.replace('depends on the proof', '401 `invalid_dpop_proof`');
        assert.equal(response, expected, `${scheme} ${field} ${bound}`);
      }
    });
  }
});

const sentences = {
  ...REFUSALS.invalid_token,
  ...REFUSALS.invalid_dpop_proof,
  ...REFUSALS.invalid_request,
  ...REFUSALS.temporarily_unavailable,
};

const reasons = [...Object.keys(sentences), 'proof-nonce'];

const cited = filesBelow(new URL('src/', ROOT))
  .filter((name) => name.endsWith('.ts'))
  .flatMap((name) => commentsOf(read(`src/${name}`)).flatMap(clausesIn));

for (const [clause = '', , refusal = ''] of tableUnder('docs/how-a-request-is-checked.md', 'The proof')) {
  test(`docs/how-a-request-is-checked.md names only existing reasons for ${clause}, which the code cites`, () => {
    assert.deepEqual(
      codeIn(refusal).filter((reason) => !reasons.includes(reason)),
      [],
    );
    assert.ok(cited.includes(`RFC 9449 ${clause}`));
  });
}

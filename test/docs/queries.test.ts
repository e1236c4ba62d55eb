/* What docs/routes-reference.md says of a query is what its schema gets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { query } from '../../src/service/routes/inputs.ts';
import { atOnce } from '../support/clock.ts';
import { schemaOf } from '../support/schemas.ts';
import { codeIn, tableUnder } from './pages.ts';

const AS_IT_IS = schemaOf((value) => ({ value }));

for (const [asked = '', got = ''] of tableUnder('docs/routes-reference.md', 'Queries')) {
  test(`a schema gets ${got} for the query ${asked}`, () => {
    const [expected = ''] = codeIn(got);
    const texts = asked === 'none' ? [''] : codeIn(asked);
    assert.ok(texts.length > 0);
    for (const text of texts) {
      const value = atOnce(query(AS_IT_IS).check(new URLSearchParams(text))) as object;
      assert.deepEqual({ ...value }, JSON.parse(expected), text);
    }
  });
}

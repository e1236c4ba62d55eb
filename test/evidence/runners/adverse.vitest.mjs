import { runInThisContext } from 'node:vm';
import { expect, test } from 'vitest';
import * as gatehouse from '../../../dist/gatehouse.js';
import * as log from '../../../dist/log.js';
import * as testing from '../../../dist/testing.js';
import adverse from '../../support/adverse.cjs';

const cases = adverse.casesOf({ gatehouse, testing, log });

test('Vitest has a realm of its own', () => {
  expect(runInThisContext('Error')).not.toBe(Error);
});

for (const [name, run] of Object.entries(cases)) test(name, run);

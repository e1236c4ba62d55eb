const { casesOf } = require('../../support/adverse.cjs');

const cases = casesOf({
  gatehouse: require('../../../dist/gatehouse.js'),
  testing: require('../../../dist/testing.js'),
  log: require('../../../dist/log.js'),
});

test('Jest has a realm of its own', () => {
  expect(require('node:vm').runInThisContext('Error')).not.toBe(Error);
});

for (const [name, run] of Object.entries(cases)) test(name, run);

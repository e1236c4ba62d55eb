module.exports = {
  rootDir: '../../..',
  roots: ['<rootDir>/test/evidence/runners'],
  testMatch: ['**/adverse.jest.cjs'],
  testEnvironment: 'node',
  transform: {},
  watchman: false,
  cache: false,
};

export default {
  test: {
    include: ['adverse.vitest.mjs'],
    pool: 'vmThreads',
    cache: false,
  },
};

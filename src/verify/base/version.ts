// The version of the package, which dist must know without its package.json. A test compares the two.

export const VERSION = '0.1.0';

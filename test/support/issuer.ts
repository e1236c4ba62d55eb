/* An issuer for tests in which the algorithm is of no interest: ES256, whose keys take no time to generate. */
import { createTestIssuer, type TestIssuerOptions } from '../../src/testing/test-issuer.ts';

export const makeIssuer = (options: TestIssuerOptions = {}) =>
  createTestIssuer({ algorithm: 'ES256', ...options });

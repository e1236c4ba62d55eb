/* The functions that take the place of a provider. The compiler is the test: each marked line must be an error. */
import type { FetchKeys, IntrospectToken } from '../../src/gatehouse.ts';
import type { JsonObject } from '../../src/verify/base/encoding.ts';

/** As other libraries declare it. An interface has no index signature. */
interface KeySet {
  readonly keys: readonly object[];
}

interface Answer {
  readonly active: boolean;
  readonly sub?: string;
}

declare const keySet: KeySet;
declare const answer: Answer;
declare const parsed: JsonObject;

export const keys: readonly FetchKeys[] = [
  async () => keySet,
  async () => parsed,
  async () => ({ keys: [] }),
  async (_, name, tenant) => ({ keys: [{ kid: `${name} ${tenant}` }] }),
  // @ts-expect-error a name that is not that of RFC 7517
  async () => ({ key: [] }),
  // @ts-expect-error a list of keys is no set
  async () => [],
  // @ts-expect-error a set comes later
  () => keySet,
];

export const answers: readonly IntrospectToken[] = [
  async () => answer,
  async () => parsed,
  async (token) => ({ active: token !== '', scope: 'read' }),
  // @ts-expect-error a name that is not that of RFC 7662
  async () => ({ valid: true }),
  // @ts-expect-error a verdict alone is no answer
  async () => true,
];

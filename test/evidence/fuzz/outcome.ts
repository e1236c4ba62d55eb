/* What a case came to: what gatehouse said of an input, and what the others said. */
import { Refused } from '../../../src/verify/base/refusal.ts';

/** `reading` is what was understood, in one spelling, so that two readings can be compared. */
export type Verdict =
  | { readonly accepted: true; readonly reading: string }
  | { readonly accepted: false; readonly reason: string };

export interface Outcome {
  /** The input as it can be shown. */
  readonly input: unknown;
  readonly ours: Verdict;
  readonly others: Readonly<Record<string, Verdict>>;
  /**
   * Set when gatehouse takes what another refuses: what was taken out of the input before it was asked again.
   */
  readonly leniency?: string;
  /** What the input was signed with, when every algorithm must be accepted now and then. */
  readonly algorithm?: string;
}

export const accepted = (reading: string): Verdict => ({ accepted: true, reading });

export const refused = (reason: string): Verdict => ({ accepted: false, reason });

/** The verdict of gatehouse. Anything thrown that is not a refusal is thrown on, and fails the run. */
export function judged(action: () => string): Verdict {
  try {
    return accepted(action());
  } catch (failure) {
    if (failure instanceof Refused) return refused(failure.refusal.reason);
    throw failure;
  }
}

/** The verdict of another implementation: whatever it throws is its refusal. */
export async function judgedByOther(action: () => Promise<string> | string): Promise<Verdict> {
  try {
    return accepted(await action());
  } catch (failure) {
    return refused(failure instanceof Error ? failure.message : String(failure));
  }
}

/** An object in one spelling: members in their order, a repeated one where `JSON.parse` puts it. */
export const spelled = (value: unknown): string => JSON.stringify(value);

/* Tests that need programs which not every machine has. */

/** The name of a test, with the reason if it is skipped. */
export const withReason = (name: string, missing: string | undefined): string =>
  missing === undefined ? name : `${name} (skipped: ${missing})`;

/* Tests that need what not every machine has. */

/** The name of a test; where something is missing, with that as the reason why it is skipped. */
export const withReason = (name: string, missing: string | undefined): string =>
  missing === undefined ? name : `${name} (skipped: ${missing})`;

/* Compares types in the compiler. */

/** True when the two types are the same, in both directions. */
type Same<One, Other> =
  (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;

/** `is<Expected>()(value)` compiles only if the value has exactly that type. */
export const is =
  <Expected>() =>
  <Found>(_: Found, ..._same: Same<Expected, Found> extends true ? [] : [never]) => ({});

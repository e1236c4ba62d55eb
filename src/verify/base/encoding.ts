// Strict readers for what arrives encoded: base64url, UTF-8, JSON objects. Trusts nothing.
// Promises: what is accepted has exactly one spelling (base64url) or one reading (UTF-8, JSON).

/** A JSON object, as it was parsed or without a prototype. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * The result, or `undefined` when the action throws an error of this class; any other error is a bug and
 * propagates.
 */
export function undefinedOn<Result>(expected: new () => Error, action: () => Result) {
  try {
    return action();
  } catch (failure) {
    if (failure instanceof expected) return undefined;
    throw failure;
  }
}

/** Decodes canonical unpadded base64url (RFC 4648 §5, RFC 7515 §2); `undefined` for any other text. */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  // Node's decoder ignores blanks, padding and spare bits; only the canonical spelling comes out again as it
  // went in.
  return bytes.toString('base64url') === text ? bytes : undefined;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Decodes UTF-8; `undefined` for ill-formed bytes. A byte-order mark stays and is for the caller to judge.
 */
export const decodeUtf8 = (bytes: Uint8Array): string | undefined =>
  undefinedOn(TypeError, () => utf8.decode(bytes));

// An object whose prototype is `null` has a hidden class of its own, which makes it large and slow to read;
// those that share this empty prototype share theirs.
const NOTHING: object = Object.freeze(Object.create(null));

/** A copy that inherits nothing: an absent member is `undefined`, whatever its name. */
export const withoutPrototype = (value: object): JsonObject => Object.assign(Object.create(NOTHING), value);

/** Not `null`, not an array. What it inherits shows: only members by fixed names may be read. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Parses JSON in UTF-8 without byte-order mark (RFC 8259 §8.1); `undefined` for anything else. Of a repeated
 * member the last one counts (RFC 7519 §4).
 */
export const parseJson = (bytes: Uint8Array): unknown =>
  undefinedOn(SyntaxError, () => JSON.parse(decodeUtf8(bytes) ?? ''));

/**
 * The same of a JSON object, `undefined` for other JSON too. As it was parsed: to copy many members takes as
 * long, and whoever sends them need not be trusted yet.
 */
export function parseJsonObject(bytes: Uint8Array): JsonObject | undefined {
  const value = parseJson(bytes);
  return isJsonObject(value) ? value : undefined;
}

/** True also for an empty array; false for one with holes, which `every` would pass over. */
export const isTextArray = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.findIndex((member) => typeof member !== 'string') < 0;

/**
 * True for an array of at least one text when the pattern fits each; for one with holes it is false, too.
 */
export const isListOf = (pattern: RegExp, value: unknown) =>
  isTextArray(value) && value.length > 0 && value.every((text) => pattern.test(text));

/** True for a number that arithmetic can trust: JSON reads `1e999` as Infinity. */
export const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value);

// Strict readers of base64url, UTF-8 and JSON. They trust nothing. Promise: base64url has one spelling,
// UTF-8 and JSON one reading.

export type JsonObject = Readonly<Record<string, unknown>>;

/** Returns `undefined` if the action throws `expected`. Other errors propagate. */
export function undefinedOn<Result>(expected: new () => Error, action: () => Result) {
  try {
    return action();
  } catch (error) {
    if (error instanceof expected) return undefined;
    throw error;
  }
}

/** Decodes canonical unpadded base64url (RFC 4648 §5, RFC 7515 §2); `undefined` for other text. */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  // Node ignores blanks, padding and spare bits. Only the canonical spelling survives the round trip.
  return bytes.toString('base64url') === text ? bytes : undefined;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns `undefined` for ill-formed bytes. Keeps a byte-order mark. */
export const decodeUtf8 = (bytes: Uint8Array): string | undefined =>
  undefinedOn(TypeError, () => utf8.decode(bytes));

// V8 makes objects whose prototype is `null` large and slow to read, but not those that share this one.
const NOTHING: object = Object.freeze(Object.create(null));

/** A copy that inherits nothing: an absent member is `undefined`, whatever its name. */
export const withoutPrototype = (value: object): JsonObject => Object.assign(Object.create(NOTHING), value);

/** False for `null` and arrays. Read only fixed names: inherited members show. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Parses UTF-8 without byte-order mark (RFC 8259 §8.1); `undefined` for anything else. The last of repeated
 * members counts (RFC 7519 §4).
 */
export const parseJson = (bytes: Uint8Array): unknown =>
  undefinedOn(SyntaxError, () => JSON.parse(decodeUtf8(bytes) ?? ''));

/** Keeps the prototype: copying takes as long as parsing, and the sender may be a stranger. */
export function parseJsonObject(bytes: Uint8Array): JsonObject | undefined {
  const value = parseJson(bytes);
  return isJsonObject(value) ? value : undefined;
}

/** True for an empty array; false for one with holes, which `every` would skip. */
export const isTextArray = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.findIndex((member) => typeof member !== 'string') < 0;

/** True for an array of at least one text, without holes, if the pattern matches each. */
export const isListOf = (pattern: RegExp, value: unknown) =>
  isTextArray(value) && value.length > 0 && value.every((text) => pattern.test(text));

/** False for Infinity, as which JSON reads `1e999`. */
export const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value);

/*
 * Strict readers for what arrives encoded: base64url, UTF-8, JSON objects.
 * Trusts nothing. Promises: what is accepted has exactly one spelling (base64url) or one reading (UTF-8, JSON).
 * Node's own decoder ignores blanks, padding and spare bits, hence the comparison with the re-encoded bytes.
 */

/** A JSON object without a prototype: an absent member is `undefined`, whatever its name. */
export type JsonObject = Readonly<Record<string, unknown>>;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes canonical unpadded base64url (RFC 4648 §5, RFC 7515 §2); `undefined` for any other text. */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/** Decodes UTF-8; `undefined` for ill-formed bytes. A byte-order mark stays and is for the caller to judge. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch (failure) {
    if (failure instanceof TypeError) return undefined;
    throw failure;
  }
}

/** The value as a JSON object if it is one: not `null`, not an array. */
export function asJsonObject(value: unknown): JsonObject | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.setPrototypeOf(value, null);
}

/**
 * Parses a JSON object in UTF-8 without byte-order mark; `undefined` for anything else.
 * Choice: of a repeated member the last one counts (RFC 7519 §4).
 */
export function parseJsonObject(bytes: Uint8Array): JsonObject | undefined {
  const text = decodeUtf8(bytes);
  if (text === undefined) return undefined;
  try {
    return asJsonObject(JSON.parse(text));
  } catch (failure) {
    if (failure instanceof SyntaxError) return undefined;
    throw failure;
  }
}

/** True for a number that arithmetic can trust: JSON reads `1e999` as Infinity. */
export const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value);

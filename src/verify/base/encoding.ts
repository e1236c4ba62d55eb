// Strict readers of base64url, UTF-8 and JSON. Promises: refuses base64url that is not canonical, and
// invalid UTF-8.

// From TypeScript 6 on, a project that does not list the types of Node would lack them.
/// <reference types="node" preserve="true" />
import { types } from 'node:util';

export type JsonObject = Readonly<Record<string, unknown>>;

/** Errors are recognized by name and code, never by class: test runners load several realms. */
export const codeOf = (error: unknown): unknown => Object(error).code;

/** `expected` is the name of an error. */
export function catching<Result>(expected: string, action: () => Result) {
  try {
    return action();
  } catch (error) {
    if (Object(error).name === expected) return undefined;
    throw error;
  }
}

/** Of any realm. */
export const isBytes = (value: unknown): value is Uint8Array =>
  ArrayBuffer.isView(value) && Reflect.get(value, Symbol.toStringTag) === 'Uint8Array';

/** A plain object of any realm: the prototype of `Object.prototype` is `null`. */
export function isPlain(value: object) {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Of any realm; in this one, also what only inherits from `Error`. */
export const isError = (value: unknown): value is Error =>
  types.isNativeError(value) || value instanceof Error;

/** Deno throws plain errors without a code for invalid keys. */
export const isBareError = (error: unknown) => Object(error).name === 'Error' && codeOf(error) === undefined;

/** Decodes canonical unpadded base64url (RFC 4648 §5, RFC 7515 §2). */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  // Node skips white space, padding and spare bits: only canonical text survives the round trip.
  return bytes.toString('base64url') === text ? bytes : undefined;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export const decodeUtf8 = (bytes: Uint8Array): string | undefined =>
  catching('TypeError', () => utf8.decode(bytes));

// V8 makes objects without a prototype slow, but not those whose prototype is this empty object.
const NOTHING: object = Object.freeze(Object.create(null));

/** Inherits nothing: absent members are `undefined`. */
export const withoutPrototype = (value: object): JsonObject => Object.assign(Object.create(NOTHING), value);

/** Callers must read only fixed names: members may be inherited. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Refuses a byte-order mark (RFC 8259 §8.1). The last of repeated members counts (RFC 7519 §4). */
export const parseJson = (bytes: Uint8Array): unknown =>
  catching('SyntaxError', () => JSON.parse(decodeUtf8(bytes) ?? ''));

/** Keeps the prototype: copying would double the cost of untrusted JSON. */
export function parseJsonObject(bytes: Uint8Array): JsonObject | undefined {
  const value = parseJson(bytes);
  return isJsonObject(value) ? value : undefined;
}

/** Refuses holes, which `every` would skip. */
export const isTextArray = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.findIndex((member) => typeof member !== 'string') < 0;

/** A non-empty list of strings that all match. */
export const isListOf = (pattern: RegExp, value: unknown) =>
  isTextArray(value) && value.length > 0 && value.every((text) => pattern.test(text));

/** Some providers write `null` for every member without a value. */
export const isPresent = (value: unknown) => value !== undefined && value !== null;

/** JSON reads `1e999` as Infinity. */
export const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value);

/*
 * The rules for single settings: raw value → typed value, or a fault that says what to change.
 * Trusts nothing. Promises: a fault never repeats the value, which may be a secret in the wrong place.
 * Does not know where a value came from: settings.ts does.
 */
import type { YamlScalar } from './yaml.ts';

/** A value as a source has it; the environment and `.env` have only text. */
export type RawValue = YamlScalar | readonly YamlScalar[];

/** What is wrong with a value, and the fix. */
export class Fault extends Error {}

/** Reads one raw value. Throws `Fault`. */
export type Rule<Value> = (raw: RawValue) => Value;

/** Text that `fault` finds nothing wrong with. */
export const text = (fault: (value: string) => string | false = () => false): Rule<string> => (raw) => {
  if (typeof raw !== 'string') throw new Fault('must be text; quote it');
  const found = fault(raw);
  if (found !== false) throw new Fault(found);
  return raw;
};

/** A whole number within bounds. */
export const integer = (min: number, max: number): Rule<number> => (raw) => {
  const value = typeof raw === 'string' && /^\d{1,15}$/.test(raw) ? Number(raw) : raw;
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  throw new Fault(`must be a whole number from ${min} to ${max}`);
};

/** `true` or `false`, in either case. */
export const boolean: Rule<boolean> = (raw) => {
  const word = String(raw).toLowerCase();
  if (Array.isArray(raw) || (word !== 'true' && word !== 'false')) throw new Fault('must be true or false');
  return word === 'true';
};

/** One of the words as they stand. */
export const word = <Word extends string>(...words: readonly Word[]): Rule<Word> => (raw) => {
  const found = words.find((known) => known === raw);
  if (found === undefined) throw new Fault(`must be one of ${words.join(', ')}`);
  return found;
};

/** One of the words, all of them upper-case, in either case. */
export const wordInEitherCase = <Word extends string>(...words: readonly Word[]): Rule<Word> => (raw) =>
  word(...words)(typeof raw === 'string' ? raw.toUpperCase() : raw);

/** A list of texts, or one text with commas between them. */
export const list = (fault: (value: string) => string | false): Rule<readonly string[]> => (raw) => {
  const members = typeof raw === 'string' ? raw.split(',').map((member) => member.trim()).filter((member) => member !== '') : raw;
  if (!Array.isArray(members)) throw new Fault('must be a list of texts; quote them');
  return members.map(text(fault));
};

/** A host name with an optional port, and nothing else of a URL. */
export function hostFault(value: string): string | false {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(value)) return 'has a scheme; remove "https://" and keep the host name';
  if (/\s/.test(value)) return 'has white space; remove it';
  if (value.includes('@')) return 'has an "@"; remove it and what stands before it';
  if (/[/?#\\]/.test(value)) return 'has a path; remove the "/" and what follows the host name';
  const url = URL.canParse(`https://${value}/`) ? new URL(`https://${value}/`) : undefined;
  const isPlain = url !== undefined && url.host === value.toLowerCase().replace(/:443$/, '') && !/\.(:|$)|[^\x21-\x7e]/.test(value);
  return !isPlain && 'is not a host name with an optional ":port"; write it as the provider shows it';
}

export const blankFault = (value: string) => /\s/.test(value) && 'has white space; remove it';

/** An absolute URL of one of these schemes, with neither user information nor fragment. */
export const urlFault = (...schemes: readonly string[]) => (value: string): string | false => {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const isGood = url !== undefined && schemes.includes(url.protocol.slice(0, -1)) && !/[\s@#\\]/.test(value);
  return !isGood && `must be a URL that begins with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}, without white space, "@" or "#"`;
};

/** The same, without a query (OpenID Connect Discovery §2 for issuers). */
export const plainUrlFault = (...schemes: readonly string[]) => (value: string): string | false =>
  urlFault(...schemes)(value) || (value.includes('?') && 'has a query; remove the "?" and what follows');

/** A web origin exactly as browsers send it. */
export function originFault(value: string): string | false {
  if (value === '*') return 'must not be "*"; list every origin';
  const isOrigin = urlFault('https', 'http')(value) === false && new URL(value).origin === value;
  return !isOrigin && 'must be an origin as browsers send it: scheme, host in lower case, port unless default, no trailing "/"';
}

/** A method name (RFC 9110 §9.1). */
export const methodFault = (value: string) => !/^[A-Z]+$/.test(value) && 'must be a method name in upper case';

// The rules for single settings: raw value → typed value, or a fault that says what to change. Promises: a fault never repeats
// the value, which may be a secret in the wrong place. Does not know where a value came from: settings.ts does.
import { normalUri } from '../request/uri.ts';
import type { YamlScalar } from './yaml.ts';

/** A value as a source has it; the environment and `.env` have only text. */
export type RawValue = YamlScalar | readonly YamlScalar[];
/** What is wrong with a value, and the fix. */
export class Fault extends Error {}
/** Reads one raw value. Throws `Fault`. */
export type Rule<Value> = (raw: RawValue) => Value;
type TextFault = (value: string) => string | false;
/** Text in which `faultOf` finds nothing wrong. */
export const text =
  (faultOf: TextFault = () => false): Rule<string> =>
  (raw) => {
    if (typeof raw !== 'string') throw new Fault('must be text; quote it');
    const fault = faultOf(raw);
    if (fault !== false) throw new Fault(fault);
    return raw;
  };
/** A rule for a setting that may be absent. */
export const optionally = <Value>(rule: Rule<Value>): Rule<Value | undefined> => rule;
/** A whole number within bounds. */
export const integer =
  (min: number, max: number): Rule<number> =>
  (raw) => {
    const value = typeof raw === 'string' && /^\d{1,15}$/.test(raw) ? Number(raw) : raw;
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
    throw new Fault(`must be a whole number from ${min} to ${max}`);
  };
/** `true` or `false`, in either case. */
export const boolean: Rule<boolean> = (raw) =>
  wordInEitherCase('true', 'false')(typeof raw === 'boolean' ? String(raw) : raw) === 'true';
/** One of the words as they stand. */
export const word =
  <Word extends string>(...words: readonly Word[]): Rule<Word> =>
  (raw) => {
    const found = words.find((known) => known === raw);
    if (found === undefined) throw new Fault(`must be one of ${words.join(', ')}`);
    return found;
  };
/** One of the words in either case. */
export const wordInEitherCase =
  <Word extends string>(...words: readonly Word[]): Rule<Word> =>
  (raw) =>
    word(...words)(
      words.find((known) => typeof raw === 'string' && known.toLowerCase() === raw.toLowerCase()) ?? raw,
    );
/** A list of texts, or one text with commas between them. */
export const list =
  (faultOf: TextFault): Rule<readonly string[]> =>
  (raw) => {
    const members =
      typeof raw === 'string'
        ? raw
            .split(',')
            .map((member) => member.trim())
            .filter((member) => member !== '')
        : raw;
    if (!Array.isArray(members)) throw new Fault('must be a list of texts; quote them');
    return members.map(text(faultOf));
  };
/** A host name with an optional port, and nothing else of a URL. */
export const hostFault: TextFault = (value) => {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(value)) return 'has a scheme; remove "https://" and keep the host name';
  if (/\s/.test(value)) return 'has white space; remove it';
  if (value.includes('@')) return 'has an "@"; remove it and what stands before it';
  if (/[/?#\\]/.test(value)) return 'has a path; remove the "/" and what follows the host name';
  const host = URL.canParse(`https://${value}/`) ? new URL(`https://${value}/`).host : undefined;
  const isHost =
    /^([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(:[1-9]\d*)?$/i.test(value) &&
    host === value.toLowerCase().replace(/:443$/, '');
  return !isHost && 'is not a host name with an optional ":port"; write it as the provider shows it';
};
export const blankFault: TextFault = (value) =>
  /^$|[\s\0]/.test(value) && 'is empty, or has white space or a NUL; remove it';
export const secretFault: TextFault = (value) => value.length < 32 && 'must have at least 32 characters';
export const prefixFault: TextFault = (value) =>
  (!URL.canParse(value) || /\s/.test(value)) && 'must be a URL prefix';
/** A method name (RFC 9110 §9.1). */
export const methodFault: TextFault = (value) =>
  !/^[A-Z]+$/.test(value) && 'must be a method name in upper case';
/** An absolute URL of one of these schemes, with neither user information nor fragment. */
export const urlFault =
  (...schemes: readonly string[]): TextFault =>
  (value) => {
    const isGood =
      URL.canParse(value) &&
      schemes.includes(new URL(value).protocol.slice(0, -1)) &&
      /^[a-z]+:\/\/[^/\s@#\\][^\s@#\\]*$/i.test(value);
    return (
      !isGood &&
      `must be a URL that begins with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}, without white space, "@" or "#"`
    );
  };
/** The same, without a query (OpenID Connect Discovery §2 for issuers). */
export const plainUrlFault =
  (...schemes: readonly string[]): TextFault =>
  (value) =>
    urlFault(...schemes)(value) || (value.includes('?') && 'has a query; remove the "?" and what follows');
/** A public URL in a spelling that proofs can be compared with (RFC 9449 §4.3(9)). */
export const publicUrlFault: TextFault = (value) =>
  plainUrlFault('https', 'http')(value) ||
  (normalUri(value) === undefined &&
    'must have its host and path as URL gives them; write it in its normal form');
/** A web origin exactly as browsers send it. */
export const originFault: TextFault = (value) => {
  if (value.includes('*')) return 'must not have a "*"; list every origin';
  const isOrigin = urlFault('https', 'http')(value) === false && new URL(value).origin === value;
  return (
    !isOrigin &&
    'must be an origin as browsers send it: scheme, host in lower case, port unless default, no trailing "/"'
  );
};

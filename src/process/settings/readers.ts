// Readers of single values: raw → typed, or a problem that says what to change. Promises: no problem repeats
// more of a value than its scheme, since it may be a secret in the wrong setting.
import { isTextArray } from '../../verify/base/encoding.ts';
import { ALGORITHM_NAMES, isOneOf, type Algorithm } from '../../verify/keys/jwk.ts';
import { normalUri } from '../../verify/request/uri.ts';
import { throwProblem, type RawValue } from './entry.ts';

/** Earlier settings, without invalid ones. */
export type Earlier = Readonly<Record<string, unknown>>;

/** Throws `SettingProblem`. */
export type Reader<Value> = (raw: RawValue, earlier?: Earlier) => Value;

export function fitting<Value>(
  read: Reader<Value>,
  problem: string,
  fits: (value: Value, earlier: Earlier) => boolean,
): Reader<Value> {
  return (raw, earlier = {}) => {
    const value = read(raw, earlier);
    return fits(value, earlier) ? value : throwProblem(problem);
  };
}

export const text: Reader<string> = (raw) =>
  typeof raw === 'string' ? raw : throwProblem('must be text; quote it');

export const matching = (pattern: RegExp, problem: string, isGood = (_: string) => true) =>
  fitting(text, problem, (value) => pattern.test(value) && isGood(value));

export function integer(min: number, max: number): Reader<number> {
  return (raw) => {
    const value = typeof raw !== 'object' && /^\d{1,15}$/.test(String(raw)) ? Number(raw) : NaN;
    return value >= min && value <= max
      ? value
      : throwProblem(`must be a whole number from ${min} to ${max}`);
  };
}

export function word<Word extends string>(...words: readonly Word[]): Reader<Word> {
  return (raw) => {
    const lower = typeof raw === 'string' && raw.toLowerCase();
    const found = words.find((candidate) => candidate.toLowerCase() === lower);
    return found ?? throwProblem(`must be one of ${words.join(', ')}`);
  };
}

export const boolean: Reader<boolean> = (raw) =>
  typeof raw === 'boolean' ? raw : word('true', 'false')(raw) === 'true';

/** A list of strings, or one string with commas. */
export function list<Text extends string>(read: Reader<Text>, least = 0): Reader<readonly Text[]> {
  return (raw) => {
    const parts = typeof raw === 'string' ? raw.split(',') : undefined;
    const members = parts?.map((part) => part.trim()) ?? raw;
    if (isTextArray(members) && members.length >= least) return members.map((member) => read(member));
    throwProblem(
      `must be a list of ${least} or more strings, or one string with commas; quote any other value`,
    );
  };
}

export const host: Reader<string> = (raw) => {
  const value = text(raw);
  const [scheme] = /^(?:https?:|[a-z][a-z0-9+.-]*:\/)\/*/i.exec(value) ?? [];
  if (scheme !== undefined) throwProblem(`has a scheme; remove "${scheme}" and keep the host name`);
  if (/\s/.test(value)) throwProblem('has white space; remove it');
  if (value.includes('@')) throwProblem('has an "@"; remove it and all before it');
  if (/[/?#\\]/.test(value)) throwProblem('has a path; remove the "/" and what follows the host name');

  return bareHost(value);
};

const bareHost = matching(
  /^([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(:[1-9]\d*)?$/i,
  'is not a host name with an optional ":port"; write it as the provider shows it',
  (value) => {
    const url = `https://${value}/`;
    return URL.canParse(url) && new URL(url).host === value.toLowerCase().replace(/:443$/, '');
  },
);

export const textWithoutBlanks = matching(/^[^\s\0]+$/, 'is empty, or has white space or a NUL; remove it');

export const secret = matching(/[^]{32}/, 'must have at least 32 characters');

export const urlPrefix = matching(
  /^\S*$/,
  'must be the beginning of a URL, such as https://api.example.com/, without white space',
  URL.canParse,
);

/** Google's key set has an "@" in its path; before the path, it would end user information. */
export const httpsUrl = matching(
  /^https:\/\/[^/\s@#\\]+(\/[^\s#\\]*)?$/i,
  'must be a URL that begins with https://, without white space, "#", or an "@" before its path',
  URL.canParse,
);

/** An issuer has no query (OpenID Connect Discovery §2). */
export const issuerUrl = matching(
  /^https:\/\/[^/?\s@#\\][^?\s@#\\]*$/i,
  'must be a URL that begins with https://, without white space, "@", "#" or "?"',
  URL.canParse,
);

/** A public URL that has a normal form, to compare proofs with (RFC 9449 §4.3(9)). */
export const publicUrl = matching(
  /^[^?#]*$/,
  'must be a URL that begins with https:// or http://, without "@", "#" or "?"',
  (value) => normalUri(value) !== undefined,
);

const algorithm: Reader<Algorithm> = (raw) => {
  const value = text(raw);
  if (!isOneOf(ALGORITHM_NAMES, value)) throwProblem(`must be one of ${ALGORITHM_NAMES.join(', ')}`);
  return value;
};

/** Case-sensitive (RFC 7515 §4.1.1). Drops duplicates. */
export const algorithms: Reader<readonly Algorithm[]> = (raw) => {
  const named = list(algorithm, 1)(raw);
  return [...new Set(named)];
};

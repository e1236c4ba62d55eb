// Readers of single values: raw → typed, or a problem that says what to change. Promises: a problem never
// repeats the value, which may be a secret in the wrong place.
import { isTextArray, undefinedOn } from '../../verify/base/encoding.ts';
import { ALGORITHM_NAMES, isOneOf, type Algorithm } from '../../verify/keys/jwk.ts';
import { normalUri } from '../../verify/request/uri.ts';
import { throwProblem, type RawValue } from './entry.ts';

/** The settings above this one in its table. Those with a problem are missing. */
export type Earlier = Readonly<Record<string, unknown>>;

/** Throws `SettingProblem`. */
export type Reader<Value> = (raw: RawValue, earlier?: Earlier) => Value;

/** Adds a condition to a reader, on its value and on earlier settings. */
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

/** Ignores case. */
export function word<Word extends string>(...words: readonly Word[]): Reader<Word> {
  return (raw) => {
    const lower = typeof raw === 'string' && raw.toLowerCase();
    const found = words.find((candidate) => candidate.toLowerCase() === lower);
    return found ?? throwProblem(`must be one of ${words.join(', ')}`);
  };
}

export const boolean: Reader<boolean> = (raw) =>
  typeof raw === 'boolean' ? raw : word('true', 'false')(raw) === 'true';

/** A list of at least so many texts, or one text with commas. */
export function list<Text extends string>(read: Reader<Text>, least = 0): Reader<readonly Text[]> {
  return (raw) => {
    const parts = typeof raw === 'string' ? raw.split(',') : undefined;
    const members = parts?.map((part) => part.trim()) ?? raw;
    if (isTextArray(members) && members.length >= least) return members.map((member) => read(member));
    throwProblem(`must be a list of ${least} or more texts, or one text with commas; quote what is no text`);
  };
}

/** A host name with an optional port. */
export const host: Reader<string> = (raw) => {
  const value = text(raw);
  const [scheme] = /^[a-z][a-z0-9+.-]*:\/\//i.exec(value) ?? [];
  if (scheme !== undefined) throwProblem(`has a scheme; remove "${scheme}" and keep the host name`);
  if (/\s/.test(value)) throwProblem('has white space; remove it');
  if (value.includes('@')) throwProblem('has an "@"; remove it and what stands before it');
  if (/[/?#\\]/.test(value)) throwProblem('has a path; remove the "/" and what follows the host name');

  return bareHost(value);
};

const bareHost = matching(
  /^([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(:[1-9]\d*)?$/i,
  'is not a host name with an optional ":port"; write it as the provider shows it',
  (value) => {
    const url = `https://${value}/`;
    // The URL parser checks IP addresses and ports.
    return URL.canParse(url) && new URL(url).host === value.toLowerCase().replace(/:443$/, '');
  },
);

export const textWithoutBlanks = matching(/^[^\s\0]+$/, 'is empty, or has white space or a NUL; remove it');

export const secret = matching(/[^]{32}/, 'must have at least 32 characters');

/** RFC 9110 §9.1. */
export const methodName = matching(/^[A-Z]+$/, 'must be a method name in upper case');

/** RFC 9110 §5.1, but not `*`, which would mean every field. */
export const fieldName = matching(
  /^[\w!#$%&'+.^`|~-]+$/,
  'must be the name of a header field; list each, without "*"',
);

export const urlPrefix = matching(
  /^\S*$/,
  'must be the beginning of a URL, such as https://api.example.com/, without white space',
  URL.canParse,
);

/** An absolute URL without user information and fragment. */
export const httpsUrl = matching(
  /^https:\/\/[^/\s@#\\][^\s@#\\]*$/i,
  'must be a URL that begins with https://, without white space, "@" or "#"',
  URL.canParse,
);

/** An issuer has no query (OpenID Connect Discovery §2). */
export const issuerUrl = matching(
  /^https:\/\/[^/?\s@#\\][^?\s@#\\]*$/i,
  'must be a URL that begins with https://, without white space, "@", "#" or "?"',
  URL.canParse,
);

const isDecodable = (value: string) =>
  URL.canParse(value) && undefinedOn(URIError, () => decodeURIComponent(value)) !== undefined;

export const storeAddress = matching(
  /^rediss?:\/\/([^\s:@/?#]*:[^\s@/?#]+@)?([\w.-]+|\[[0-9a-f:.]+\])(:[1-9]\d*)?(\/\d{0,9})?$/i,
  'must be redis://[[user]:password@]host[:port][/database], or rediss://, with special characters as %XX',
  isDecodable,
);

/** Refuses backslashes, since the URL parser reads one as a slash. */
export const proxyAddress = matching(
  /^http:\/\/([^\s:@/?#\\]+(:[^\s@/?#\\]*)?@)?([\w.-]+|\[[0-9a-f:.]+\])(:[1-9]\d*)?\/?$/i,
  'must be http://[user[:password]@]host[:port], with special characters as %XX',
  isDecodable,
);

/** A public URL in the normal form that proofs are compared with (RFC 9449 §4.3(9)). */
export const publicUrl = matching(
  /^[^?#]*$/,
  'must be a URL that begins with https:// or http://, in its normal form, without "@", "#" or "?"',
  (value) => normalUri(value) !== undefined,
);

/**
 * The identifier of a protected resource (RFC 9728 §1.2). RFC 6761 §6.3: names under `localhost` are
 * loopback too. Stricter: RFC 9728 §3.1 keeps a slash that ends a path, but clients differ over what they
 * ask for then.
 */
const RESOURCE =
  /^(https:\/\/[^/]+|http:\/\/(([\w-]+\.)*localhost|127(\.\d+){3}|\[::1\])(:\d+)?)\/([^=]*[^=/])?$/;

export const resourceUrl = fitting(
  publicUrl,
  'must be https:// but for loopback, have the origin of the public URL, no "=", and no "/" after a path',
  (value, { publicUrl: shown = value }) => {
    const { href, origin } = new URL(value);
    return RESOURCE.test(href) && new URL(String(shown)).origin === origin;
  },
);

/** A scope-token (RFC 6749 §3.3) of this API, not one by which a client asks about its user. */
export const resourceScope = matching(
  /^(?!(openid|offline_access)$)[\x21\x23-\x5b\x5d-\x7e]+$/,
  'must be a scope of this API, without white space, quotes or "\\"; neither openid nor offline_access',
);

/** A web origin, spelled exactly as browsers send it. */
export const origin = matching(
  /^https?:[^*]*$/,
  'must be an origin as browsers send it: scheme, lower-case host, port unless default; no "*" or last "/"',
  (value) => URL.canParse(value) && new URL(value).origin === value,
);

const algorithm: Reader<Algorithm> = (raw) => {
  const value = text(raw);
  if (!isOneOf(ALGORITHM_NAMES, value)) throwProblem(`must be of ${ALGORITHM_NAMES.join(', ')}`);
  return value;
};

/** Signature algorithms, each once; letter case counts (RFC 7515 §4.1.1). */
export const algorithms: Reader<readonly Algorithm[]> = (raw) => {
  const named = list(algorithm, 1)(raw);
  return [...new Set(named)];
};

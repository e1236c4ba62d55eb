// The rules for host names and URLs that options hold.
import { textMatching, type Rule } from './base/option.ts';
import { normalUri } from './request/facts.ts';

export const host: Rule = (value) => {
  if (typeof value !== 'string') return 'must be text';

  const [scheme] = /^(?:https?:|[a-z][a-z0-9+.-]*:\/)\/*/i.exec(value) ?? [];
  if (scheme !== undefined) return `has a scheme; remove "${scheme}" and keep the host name`;
  if (/\s/.test(value)) return 'has white space; remove it';
  if (value.includes('@')) return 'has an "@"; remove it and all before it';
  if (/[/?#\\]/.test(value)) return 'has a path; remove the "/" and what follows the host name';

  return bareHost(value);
};

const bareHost = textMatching(
  /^([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(:[1-9]\d*)?$/i,
  'is not a host name with an optional ":port"; write it as the provider shows it',
  (value) => {
    const url = `https://${value}/`;
    return URL.canParse(url) && new URL(url).host === value.toLowerCase().replace(/:443$/, '');
  },
);

export const urlPrefix: Rule = textMatching(
  /^\S*$/,
  'must be the beginning of a URL, such as https://api.example.com/, without white space',
  URL.canParse,
);

/** Google's key set has an "@" in its path; before the path, it would end user information. */
export const httpsUrl: Rule = textMatching(
  /^https:\/\/[^/\s@#\\]+(\/[^\s#\\]*)?$/i,
  'must be a URL that begins with https://, without white space, "#", or an "@" before its path',
  URL.canParse,
);

/** An issuer has no query (OpenID Connect Discovery §3). */
export const issuerUrl: Rule = textMatching(
  /^https:\/\/[^/?\s@#\\{}][^?\s@#\\{}]*$/i,
  'must be a URL that begins with https://, without white space, "@", "#", "?", "{" or "}"',
  URL.canParse,
);

/** A public URL that has a normal form, to compare proofs with (RFC 9449 §4.3(9)). */
export const publicUrl: Rule = textMatching(
  /^[^?#]*$/,
  'must be a URL that begins with https:// or http://, in ASCII, without blanks, braces, "@", "#" or "?"',
  (value) => normalUri(value) !== undefined,
);

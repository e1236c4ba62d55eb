// The address of a store: one server, the nodes of a cluster, or the sentinels that know the server.
import { isDecodable, textMatching, type Rule } from '../../verify/base/option.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** What an address says. */
export interface Target {
  readonly kind: 'redis' | 'redis-cluster' | 'redis-sentinel';
  readonly isTls: boolean;
  /** The words of `AUTH`: user and password, password alone, or none. */
  readonly credentials: readonly string[];
  /** Empty for the first. */
  readonly database: string;
  readonly hosts: readonly Address[];
  /** The name that the sentinels have for the server. */
  readonly master: string;
}

const USER = /([^\s:@/?#]*:[^\s@/?#]+@)?/.source;
const HOST = /(?:[\w.-]+|\[[0-9a-f:.]+\])(?::[1-9]\d*)?/.source;
/** For several hosts, a comma here must be %2C: otherwise, a host before the user would count as the user. */
const USER_OF_ALL = USER.replaceAll('@/', '@,/');
const HOSTS = `(${HOST}(?:,${HOST}){0,9})`;

const FORMS = [
  `(rediss?):\\/\\/${USER}(${HOST})(?:\\/(\\d{0,9}))?`,
  `(rediss?-cluster):\\/\\/${USER_OF_ALL}${HOSTS}\\/?`,
  `(rediss?-sentinel):\\/\\/${USER_OF_ALL}${HOSTS}(?:\\/(\\d{0,9}))?\\?master=([\\w.-]+)`,
].map((form) => new RegExp(`^${form}$`, 'i'));

const PROBLEM =
  'must be redis://[[user]:password@]host[:port][/database], or rediss://, with special characters as %XX; ' +
  'or redis-cluster://, with up to ten hosts, comma-separated, and no database; ' +
  'or redis-sentinel://, with up to ten sentinels, and ?master=name at the end';

export const storeUrl: Rule = textMatching(/./, PROBLEM, (url) => partsOf(url) !== undefined);

function partsOf(url: string) {
  const [, scheme = '', user = '', hosts = '', database = '', master = ''] =
    FORMS.map((form) => form.exec(url)).find(Boolean) ?? [];
  const names = hosts.split(',');
  const urls = names.map((name) => `redis://${user}${name}`);
  if (scheme === '' || !urls.every(isDecodable)) return undefined;

  return { scheme: scheme.toLowerCase(), user, names, database, master };
}

const PORT = 6379;
const SENTINEL_PORT = 26_379;

/** Trusts that the rule `storeUrl` has no problem with it. */
export function parseTarget(url: string): Target {
  const { scheme, user, names, database, master } = partsOf(url) ?? throwForeign();
  const [name = '', ...password] = user.slice(0, -1).split(':');
  const kind = scheme.replace('rediss', 'redis') as Target['kind'];
  const usualPort = kind === 'redis-sentinel' ? SENTINEL_PORT : PORT;

  return {
    kind,
    isTls: scheme.startsWith('rediss'),
    credentials: [name, password.join(':')].filter(Boolean).map(decodeURIComponent),
    database: database.replace(/^0*/, ''),
    hosts: names.map((one) => addressIn(one, usualPort)),
    master,
  };
}

function throwForeign(): never {
  throw new TypeError(PROBLEM);
}

/** Of `host:port`. The host may be empty, or an IPv6 address with or without brackets. */
export function addressIn(text: string, usualPort = 0): Address {
  const [, host = text, port = usualPort] = /^(.*):(\d+)$/.exec(text) ?? [];
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}

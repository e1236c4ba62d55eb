/* An example is one request with the answer to expect; a block is how it is printed, with its line for the
   shell. */
import type { Client, Provider } from '../idp/provider.ts';

/** One request and its answer. `Name` is the identifier of a client whose token is sent. */
export interface Example<Name extends string = string> {
  /** The path of the GET request. */
  readonly path: string;
  /** Whose token is sent; without it there is no `Authorization` header. */
  readonly as?: Name;
  readonly status: number;
  /** How the body begins, or all of it when that is JSON already. */
  readonly body: string;
  /** Why the answer is this one. */
  readonly why: string;
}

/** What is printed: a heading, one line for the shell, and the answer to expect. */
export interface Block {
  readonly route: string;
  readonly status: number;
  readonly why: string;
  /** One line for a POSIX shell. */
  readonly line: string;
  readonly body: string;
}

/** What is up while blocks are made. */
export interface Stage {
  readonly provider: Provider;
  readonly clients: readonly Client[];
  /** The service's origin, such as `http://127.0.0.1:3001`. */
  readonly origin: string;
}

/** Makes blocks that belong together; it may ask the provider for what they need. */
export type Section = (stage: Stage) => Promise<readonly Block[]>;

/** One profile: the clients that get tokens, the settings beside the provider's, and what is printed. */
export interface Script {
  readonly clients: readonly Client[];
  /** The one that it takes when it can. */
  readonly port: number;
  readonly settings: (origin: string) => Readonly<Record<string, string>>;
  readonly sections: readonly Section[];
}

const UNAUTHORIZED = '{"error":"unauthorized","message":"Authentication required"}';
const INVALID_TOKEN = '{"error":"invalid_token","message":"Authentication required"}';

/** An answer for which no token is sent. */
export const answered = (path: string, body: string, why: string): Example<never> => ({
  path,
  status: 200,
  body,
  why,
});

export const granted = <Name extends string>(
  path: string,
  as: Name,
  body: string,
  why: string,
): Example<Name> => ({ path, as, status: 200, body, why });

export const withoutToken = (path: string): Example<never> => ({
  path,
  status: 401,
  body: UNAUTHORIZED,
  why: 'there is no token',
});

export const tokenRefused = <Name extends string>(path: string, as: Name, why: string): Example<Name> => ({
  path,
  as,
  status: 401,
  body: INVALID_TOKEN,
  why,
});

export const forbidden = <Name extends string>(path: string, as: Name, why: string): Example<Name> => ({
  path,
  as,
  status: 403,
  body: '{"error":"insufficient_scope"',
  why,
});

export const notFound = <Name extends string>(path: string, why: string, as?: Name): Example<Name> => ({
  path,
  ...(as === undefined ? {} : { as }),
  status: 404,
  body: '{"error":"not_found"',
  why,
});

/** Health, in both profiles. */
export const health: readonly Example<never>[] = [
  answered('/healthz', '{"status":"ok"}', 'the process lives'),
  answered('/readyz', '{"status":"ready"}', 'the signing keys are held'),
];

// Whoever has a proxy in the environment would otherwise send a request for loopback to it.
const hasProxy = ['http_proxy', 'https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'].some(
  (name) => process.env[name],
);

const DIRECT = hasProxy ? " --noproxy '*'" : '';
const CURL = `curl -i${DIRECT}`;

/** For a line within a line. */
export const QUIET_CURL = `curl -s${DIRECT}`;

/** A line for a POSIX shell; the words are quoted unless they are plain. */
export const shellLine = (...words: readonly string[]): string => words.map(quote).join(' ');

/** A curl line. */
export const curlLine = (...words: readonly string[]): string => `${CURL} ${shellLine(...words)}`;

const quote = (word: string) => (/^[\w/.:=@-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

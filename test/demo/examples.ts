/* An example is one request with the status to expect: the demo prints it as a line for the shell, and its page
   sends it from a browser. A group holds the examples of one subject. */
import type { Client, Provider } from '../idp/provider.ts';

/**
 * How a token that is bound to a key (RFC 9449) is sent: with a proof, with a proof that was used before,
 * with a proof by another key, or as a Bearer token without any.
 */
export type Way = 'proof' | 'replay' | 'other-key' | 'bearer';

/** One GET request and its status. `Name` is the identifier of the client whose token is sent. */
export interface Example<Name extends string = string> {
  readonly path: string;
  /** Without it there is no `Authorization` field. */
  readonly as?: Name;
  /** Only for a token that is bound to a key. */
  readonly way?: Way;
  readonly status: number;
  /** Why this is the status, in a few words. */
  readonly why: string;
  /** Left to the page, so that the lines fit on a screen. */
  readonly isOnPageOnly?: true;
}

/** Of a group, in the page. */
export type GroupId = 'open' | 'token' | 'stolen' | 'scopes' | 'claims';

/** What the page shows under one heading. */
export interface Group<Name extends string = string> {
  readonly id: GroupId;
  readonly title: string;
  /** What its calls have in common, in a sentence. */
  readonly says: string;
  readonly examples: readonly Example<Name>[];
}

/** What runs when the lines for the shell are made. */
export interface Stage {
  readonly provider: Provider;
  /** The service's origin, such as `http://127.0.0.1:3001`. */
  readonly origin: string;
}

/** A line for the shell that is no GET request of the API. */
export interface Line {
  readonly command: string;
  readonly status: number;
  readonly why: string;
}

/** One profile: its clients, its settings besides the provider's, and what is shown of it. */
export interface Script {
  readonly clients: readonly Client[];
  /** The client whose secret the programs and the token request use. */
  readonly user: string;
  /** The one that it takes when it can. */
  readonly port: number;
  readonly settings: (stage: Stage) => Readonly<Record<string, string>>;
  readonly groups: readonly Group[];
  /** Printed after the examples. */
  readonly lines: readonly Line[];
}

/** All examples, in the order of the groups. */
export const examplesOf = (groups: readonly Group[]): readonly Example[] =>
  groups.flatMap(({ examples }) => examples);

type Grouped<Name extends string> = readonly Example<Name>[];

export const openRoutes = <Name extends string>(...examples: Grouped<Name>): Group<Name> => ({
  id: 'open',
  title: 'Open routes',
  says: 'These routes need no token.',
  examples,
});

export const tokenRoutes = <Name extends string>(...examples: Grouped<Name>): Group<Name> => ({
  id: 'token',
  title: 'A token',
  says: 'The token must come from the provider, be for this API, and not have expired.',
  examples,
});

/** Calls with a token that is bound to a key, and what comes of each way to send it. */
export const stolenToken = <Name extends string>(path: string, as: Name): Group<Name> => ({
  id: 'stolen',
  title: 'A stolen token',
  says: 'The token is bound to a key: each call needs a new proof (DPoP), signed with that key.',
  examples: [
    { path, as, way: 'proof', status: 200, why: 'a bound token, and its proof' },
    { path, as, way: 'replay', status: 401, why: 'the proof was used before' },
    { path, as, way: 'other-key', status: 401, why: 'a thief has another key' },
    { path, as, way: 'bearer', status: 401, why: 'a bound token without proof' },
  ],
});

export const scopeRoutes = <Name extends string>(...examples: Grouped<Name>): Group<Name> => ({
  id: 'scopes',
  title: 'Scopes',
  says: 'A valid token also needs the scope of the route.',
  examples,
});

export const claimRoutes = <Name extends string>(...examples: Grouped<Name>): Group<Name> => ({
  id: 'claims',
  title: 'Claims',
  says: 'A valid token also needs the claims of the route.',
  examples,
});

/** A request for which no token is sent. */
export const answered = (path: string, why: string): Example<never> => ({ path, status: 200, why });

export const granted = <Name extends string>(path: string, as: Name, why: string): Example<Name> => ({
  path,
  as,
  status: 200,
  why,
});

export const withoutToken = (path: string, why = 'there is no token'): Example<never> => ({
  path,
  status: 401,
  why,
});

/** The same at one more route. */
export const withoutTokenToo = (path: string): Example<never> => ({
  ...withoutToken(path),
  isOnPageOnly: true,
});

export const tokenRefused = <Name extends string>(path: string, as: Name, why: string): Example<Name> => ({
  path,
  as,
  status: 401,
  why,
});

export const forbidden = <Name extends string>(path: string, as: Name, why: string): Example<Name> => ({
  path,
  as,
  status: 403,
  why,
});

export const notFound = <Name extends string>(path: string, why: string, as?: Name): Example<Name> => ({
  path,
  ...(as === undefined ? {} : { as }),
  status: 404,
  why,
});

/** Health, in both profiles. */
export const health: readonly Example<never>[] = [
  answered('/healthz', 'the process lives'),
  answered('/readyz', 'the signing keys are loaded'),
];

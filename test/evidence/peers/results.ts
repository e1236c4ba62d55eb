/* What the comparison with other verifiers is about, and where its outcomes are written. */

export interface Peer {
  readonly name: string;
  /** The program, from this folder. */
  readonly server: string;
  /** The folder whose package.json has the version. */
  readonly versioned: string;
}

const SERVERS = '../bench/servers';
const PACKAGES = '../node_modules';

export const PEERS: readonly Peer[] = [
  { name: 'gatehouse', server: '../../../dist/server.js', versioned: '../../..' },
  {
    name: 'express-oauth2-jwt-bearer',
    server: `${SERVERS}/express.mjs`,
    versioned: `${PACKAGES}/express-oauth2-jwt-bearer`,
  },
  {
    name: '@fastify/jwt',
    server: `${SERVERS}/fastify.mjs`,
    versioned: `${PACKAGES}/@fastify/jwt`,
  },
  {
    name: 'jose',
    server: `${SERVERS}/jose.mjs`,
    versioned: `${PACKAGES}/jose`,
  },
];

/** What came of each row. */
export type Outcome = Readonly<Record<string, string>>;

/** By name and version of what was tried. */
export type Results = Readonly<Record<string, Outcome>>;

export const RESULTS = new URL('results.json', import.meta.url);

/** The rows of the table, in its order. */
export const ROWS: Readonly<Record<string, string>> = {
  idToken: "an ID token with `at_hash` and the API's audience",
  logoutToken: "a logout token with the API's audience",
  stolen: 'a key-bound token as Bearer, without a proof',
  proof: 'a replayed DPoP proof',
  fields: 'two `Authorization` headers, the first one valid',
  rotated: 'a token signed with a newly published key',
  outage: 'a valid token, with the provider down since startup',
  hs256: 'an HS256 token, with the server set up for HS256',
};

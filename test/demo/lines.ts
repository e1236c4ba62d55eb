/* Examples as lines for the shell. A file sets the variables that the lines use, so that each line is short. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client, Provider } from '../idp/provider.ts';
import { TOKEN_REQUEST_TYPE, tokenEndpointOf, tokenRequest } from './clients.ts';
import type { Example, Line } from './examples.ts';

/** Whoever has a proxy in the environment would otherwise send a request for loopback to it. */
const PROXIES = ['http_proxy', 'https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'];

const programAt = (name: string) => fileURLToPath(new URL(name, import.meta.url));

const quote = (word: string) => (/^[\w/.:=@-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** Words for a POSIX shell, quoted unless they are plain. */
export const shellLine = (...words: readonly string[]): string => words.map(quote).join(' ');

/** What the programs of the demo read from their environment, to get a token. */
export const tokenSettings = (
  provider: Provider,
  { id, secret }: Client,
): Readonly<Record<string, string>> => ({
  CA_FILE: provider.authorityFile,
  TOKEN_ENDPOINT: tokenEndpointOf(provider),
  AUDIENCE: provider.audience,
  CLIENT_ID: id,
  CLIENT_SECRET: secret,
});

/** The file that sets what the lines use. */
export interface Variables {
  readonly file: string;
  remove(): void;
}

interface Values {
  readonly provider: Provider;
  readonly origin: string;
  /** Of the page. */
  readonly webOrigin: string;
  /** The client that asks for tokens of its own. */
  readonly user: Client;
  readonly tokens: ReadonlyMap<string, string>;
}

/** Writes the file into a directory that only its owner can read. */
export function writeVariables({ provider, origin, webOrigin, user, tokens }: Values): Variables {
  const values = {
    API: origin,
    PROVIDER: provider.domain,
    ...Object.fromEntries([...tokens].map(([id, token]) => [variableOf(id), token])),
    ...tokenSettings(provider, user),
    TYPE: `Content-Type: ${TOKEN_REQUEST_TYPE}`,
    REQUEST: tokenRequest(provider, user),
    ROTATE: `${webOrigin}/rotate`,
    DPOP: programAt('dpop-call.mjs'),
    WALK: programAt('walk-call.mjs'),
  };
  const lines = Object.entries(values).map(([name, value]) => `export ${name}=${quote(value)}`);
  if (PROXIES.some((name) => process.env[name])) {
    lines.push('export no_proxy="127.0.0.1,${no_proxy:-$NO_PROXY}"');
  }

  // zsh takes what is typed after # as words, unless told otherwise.
  lines.push('[ -n "$ZSH_VERSION" ] && setopt interactive_comments || true');
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-demo-'));
  const file = join(directory, 'tokens');
  const remove = () => rmSync(directory, { recursive: true, force: true });
  process.once('exit', remove);
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  return { file, remove };
}

const variableOf = (client: string) => client.toUpperCase();

/** The line for an example. */
export function lineOf({ path, as, way, status, why }: Example): Line {
  const url = `$API${path}`;
  const option = way === 'proof' ? '' : `--${way} `;
  if (way !== undefined) return { command: `node "$DPOP" ${option}${url}`, status, why };

  const token = as === undefined ? '' : ` -H "Authorization: Bearer $${variableOf(as)}"`;
  return { command: `curl -i${token} ${url}`, status, why };
}

/** How to get a token without this program. */
export const ownToken: Line = {
  command: 'curl -i --cacert "$CA_FILE" -H "$TYPE" -d "$REQUEST" $TOKEN_ENDPOINT',
  status: 200,
  why: 'a token of your own',
};

/** How to make the provider sign with a new key. */
export const rotation: Line = {
  command: `curl -i -H "$TYPE" -d '{}' $ROTATE`,
  status: 200,
  why: 'rotates the signing key',
};

/** The way of a client that is told nothing but a URL. */
export const walkTo = (path: string): Line => ({
  command: `node "$WALK" $API${path}`,
  status: 200,
  why: 'finds the provider from the 401',
});

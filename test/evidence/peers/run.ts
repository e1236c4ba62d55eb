/* Sends the same requests to gatehouse and to what people would otherwise use on Node, each set up as its
   documentation shows (the servers of the benchmark), and compares the outcomes with those of results.json,
   from which the table in README.md is made. `--write` writes that file.

   Shows: how other Node verifiers treat stolen tokens, replayed proofs, new keys and outages.
   Takes: 15 s.
   Needs: packages. */
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { startProvider, type Provider } from '../../idp/provider.ts';
import { ask } from '../../support/client.ts';
import { freePort } from '../../support/free-port.ts';
import { makeProof, makeProofKey } from '../../support/proof.ts';
import { PEERS, RESULTS, type Outcome, type Peer, type Results } from './results.ts';

const PATH = '/api/private';
const SECRET = 's'.repeat(32);

const fileAt = (name: string) => fileURLToPath(new URL(name, import.meta.url));

interface Running {
  readonly port: number;
  stop(): Promise<void>;
}

const isListening = async (port: number): Promise<boolean> => {
  const socket = connect(port, '127.0.0.1');
  const opened = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return opened;
};

/** Starts a server in a process of its own; `undefined` when it ends before it listens. */
async function start(
  { name, server }: Peer,
  provider: Provider,
  more: Readonly<Record<string, string>> = {},
): Promise<Running | undefined> {
  const port = await freePort();
  const child = spawn(process.execPath, [fileAt(server)], {
    cwd: tmpdir(),
    stdio: 'ignore',
    env: {
      NODE_EXTRA_CA_CERTS: provider.authorityFile,
      HOST: '127.0.0.1',
      PORT: String(port),
      // What the servers of the benchmark read.
      ISSUER: provider.issuer,
      AUDIENCE: provider.audience,
      JWKS_URI: `${provider.issuer}.well-known/jwks.json`,
      CACHE: '1000',
      // What gatehouse reads.
      IDP_DOMAIN: provider.domain,
      IDP_AUDIENCE: provider.audience,
      // The default of the package. Of all programs, only the sample profile B has another.
      IDP_DPOP_MODE: 'ALLOWED',
      PEER: name,
      ...more,
    },
  });
  let isGone = false;
  const gone = once(child, 'exit').then(() => {
    isGone = true;
  });
  while (!(await isListening(port))) {
    if (isGone) return undefined;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    port,
    stop: () => {
      child.kill('SIGKILL');
      return gone;
    },
  };
}

const now = () => Math.floor(Date.now() / 1000);

/** A server and its provider, with requests whose status it returns. */
class Trial {
  readonly #key = makeProofKey();

  readonly port: number;
  readonly provider: Provider;

  constructor(port: number, provider: Provider) {
    this.port = port;
    this.provider = provider;
  }

  async status(token: string): Promise<number> {
    return (await ask(this.port, PATH, { token })).status;
  }

  /** A token that is bound to the key. */
  bound(): string {
    return this.provider.issue({ cnf: { jkt: this.#key.thumbprint } });
  }

  /** The statuses of one proof that is sent twice. */
  async twice(): Promise<readonly number[]> {
    const token = this.bound();
    const uri = `http://127.0.0.1:${this.port}${PATH}`;
    const proof = makeProof(this.#key, { token, uri, nowSeconds: now() });
    const headers = { Host: `127.0.0.1:${this.port}`, Authorization: `DPoP ${token}`, DPoP: proof };
    const first = await ask(this.port, PATH, { headers });
    const second = await ask(this.port, PATH, { headers });
    return [first.status, second.status];
  }

  /** The status of a request with two `Authorization` fields, the first one good. */
  async twoFields(): Promise<number> {
    const socket = connect(this.port, '127.0.0.1');
    const token = this.provider.issue();
    socket.write(
      `GET ${PATH} HTTP/1.1\r\nHost: 127.0.0.1:${this.port}\r\nConnection: close\r\n` +
        `Authorization: Bearer ${token}\r\nAuthorization: Bearer another\r\n\r\n`,
    );
    let text = '';
    for await (const chunk of socket) text += chunk;
    return Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1]);
  }

  /** The status of a token whose key was published just now. */
  rotated(): Promise<number> {
    this.provider.rotate();
    return this.status(this.provider.issue());
  }
}

const EVENTS = { 'http://schemas.openid.net/event/backchannel-logout': {} };

/** What comes of each request, by its row in the table. */
async function outcomesOf(trial: Trial): Promise<Outcome> {
  const { provider } = trial;
  const good = await trial.status(provider.issue());
  const idToken = await trial.status(provider.issue({ nonce: 'n-0S6', at_hash: '77QmUPtjPfzWtF2AnpK9RQ' }));
  const logoutToken = await trial.status(provider.issue({ events: EVENTS }, { typ: 'logout+jwt' }));
  const stolen = await trial.status(trial.bound());
  const [first, second] = await trial.twice();
  const fields = await trial.twoFields();
  const rotated = await trial.rotated();
  return {
    good: String(good),
    idToken: String(idToken),
    logoutToken: String(logoutToken),
    stolen: String(stolen),
    proof: first === 200 ? String(second) : `${first}: no DPoP`,
    fields: String(fields),
    rotated: String(rotated),
  };
}

/** The status of a valid token while the provider cannot be reached, from the start on. */
async function duringOutage(peer: Peer): Promise<string> {
  const provider = await startProvider();
  const token = provider.issue();
  await provider.fault('all', 'refuse');
  const server = await start(peer, provider);
  const outcome =
    server === undefined ? 'does not start' : String((await ask(server.port, PATH, { token })).status);
  await server?.stop();
  await provider.stop();
  return outcome;
}

/** The status of an HS256 token at a server that is set up for it, if it can be. */
async function withSharedSecret(peer: Peer): Promise<string> {
  const provider = await startProvider();
  const server = peer.name === 'gatehouse' ? peer.server : 'hs256.mjs'; // express-oauth2-jwt-bearer accepts either a secret or the URL of keys.
  const running = await start({ ...peer, server }, provider, {
    IDP_ALGORITHMS: 'HS256',
    SECRET,
    JWKS_URI: '',
  });
  const outcome =
    running === undefined
      ? 'does not start'
      : String(await new Trial(running.port, provider).status(signedWithSecret(provider.issue())));
  await running?.stop();
  await provider.stop();
  return outcome;
}

/** The claims of a token, signed with the shared secret. */
function signedWithSecret(token: string): string {
  const [, payload = ''] = token.split('.');
  const header = Buffer.from(JSON.stringify({ alg: 'HS256', typ: 'JWT' })).toString('base64url');
  const input = `${header}.${payload}`;
  return `${input}.${createHmac('sha256', SECRET).update(input).digest('base64url')}`;
}

async function tryPeer(peer: Peer): Promise<Outcome> {
  const provider = await startProvider();
  const server = await start(peer, provider);
  if (server === undefined) throw new Error(`${peer.name} does not start`);
  const outcomes = await outcomesOf(new Trial(server.port, provider));
  await server.stop();
  await provider.stop();
  return { ...outcomes, outage: await duringOutage(peer), hs256: await withSharedSecret(peer) };
}

const versionOf = ({ versioned }: Peer): string =>
  JSON.parse(readFileSync(fileAt(`${versioned}/package.json`), 'utf8')).version;

const results: Record<string, Outcome> = {};

for (const peer of PEERS) {
  results[`${peer.name} ${versionOf(peer)}`] = await tryPeer(peer);
}

console.table(results);
const isWrite = process.argv.includes('--write');
if (isWrite) writeFileSync(RESULTS, `${JSON.stringify(results, undefined, 2)}\n`);

const written = JSON.parse(readFileSync(RESULTS, 'utf8')) as Results;

if (!isDeepStrictEqual(written, results)) {
  console.error('the outcomes differ from results.json: look, then run it with --write, and npm run docs');
  process.exitCode = 1;
}

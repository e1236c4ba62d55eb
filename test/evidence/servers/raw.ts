/* Bytes that no usual client sends: repeated fields, and hosts and targets of which some servers make the URL of a
   Request. Whatever the server makes of them, none is admitted for a proof of another path, and none is a 500. */
import { connect } from 'node:net';
import { createProofKey, type TestIssuer } from '../../../src/testing.ts';
import { lastNonce } from './ask.ts';

export const PUBLIC_ORIGIN = 'https://api.test';

const HOST = 'a.test';
const OTHER_PATH = '/api/status';
const MOST_MILLIS = 5_000;

interface RawServer {
  /** Answers at each path, so that a URL with another path may be admitted there. */
  readonly hasOnePath?: boolean;
  /** Answers 500 before the gate is asked, where the URL has a host that `new URL` refuses. */
  readonly failsByItself?: boolean;
  /** Its router skips a host by the length that it usually has: its sample refuses a shorter one. */
  readonly refusesShortHosts?: boolean;
}

/** By the names of the programs. */
export const RAW_SERVERS: Readonly<Record<string, RawServer>> = {
  'node-http': { hasOnePath: true },
  express5: {},
  fastify5: {},
  'hono-node': {},
  'hono-bun-basePath': {},
  'hono-deno': {},
  'h3-bun': { failsByItself: true },
  elysia: { refusesShortHosts: true },
  'Bun.serve': { hasOnePath: true },
  'Deno.serve': { hasOnePath: true },
};

interface Raw {
  readonly target: string;
  readonly hosts?: readonly string[];
  readonly fields: readonly string[];
}

/** The response to one request, or nothing if the server just closes. */
function exchange(port: number, { target, hosts = [HOST], fields }: Raw): Promise<string> {
  const lines = [...hosts.map((host) => `Host: ${host}`), ...fields, 'Connection: close'];
  const socket = connect(port, '127.0.0.1');
  socket.setEncoding('latin1').setTimeout(MOST_MILLIS, () => socket.destroy(new Error('no response')));
  socket.write(`GET ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  return socket.toArray().then((parts) => parts.join(''), String);
}

/** Of which a server that trusts them makes a URL with another path. */
const POINTING = ['\\api\\status?', `${OTHER_PATH}?`, `${OTHER_PATH}#`, '#', '?'].map((end) => HOST + end);

const STRANGE_HOSTS = [[], [''], ['a:99999'], ['[::1'], ['a b'], ['a@b'], ['a\xe9'], [HOST, 'b'], ['', HOST]];

/** One line for each response that is not as expected. */
export async function rawProblemsOf(
  url: string,
  path: string,
  issuer: TestIssuer,
  { hasOnePath = false, failsByItself = false, refusesShortHosts = false }: RawServer,
): Promise<string[]> {
  const port = Number(new URL(url).port);
  const key = createProofKey();
  const token = issuer.boundToken(key, { scope: 'read:orders' });
  const bearer = `Authorization: ${issuer.bearer({ scope: 'read:orders' }).authorization}`;
  const bound = `Authorization: DPoP ${token}`;

  const prove = (proved: string) => {
    const nonce = lastNonce();
    return `DPoP: ${issuer.proof(key, { method: 'GET', url: PUBLIC_ORIGIN + proved }, token, { nonce })}`;
  };

  const problems: string[] = [];

  async function expect(isAdmittable: boolean, request: Raw) {
    const response = await exchange(port, request);
    const status = /^HTTP\/1\.[01] (\d{3})/.exec(response)?.[1] ?? '';
    const isAdmitted = response.includes('test-user');
    // Some servers close a connection of which they make no request.
    const isHandled = response === '' || (status >= '200' && status < '500') || failsByItself;
    if (isHandled && (isAdmittable || !isAdmitted)) return;

    const { target, hosts, fields } = request;
    const names = fields.map((field) => field.slice(0, 18));
    problems.push(`${JSON.stringify({ target, hosts, names })}: ${response.slice(0, 60)}`);
  }

  for (const fields of [
    [bearer, 'Authorization:'],
    ['Authorization:', bearer],
    [bearer, bearer],
    [bound, 'DPoP:', prove(path)],
    [bound, prove(path), 'DPoP:'],
    [bound, prove(path), prove(path)],
    [bearer, 'DPoP:'],
  ]) {
    await expect(false, { target: path, fields });
  }

  for (const pointing of POINTING) {
    const isOfOther = hasOnePath && pointing === `${HOST}${OTHER_PATH}?`;
    await expect(isOfOther, { target: path, hosts: [pointing], fields: [bound, prove(OTHER_PATH)] });
    const target = `http://${pointing}${path}`;
    await expect(isOfOther, { target, fields: [bound, prove(OTHER_PATH)] });
    // A query without a path before it has the slash in which some routers see the path.
    await expect(hasOnePath, { target: path, hosts: [pointing], fields: [bound, prove('/')] });
    await expect(hasOnePath, { target, fields: [bound, prove('/')] });
  }

  for (const target of [`${path}#`, `${path}#/x`, `${path}\\`, `${path}/../x`]) {
    // Bun resolves dot segments as a proof does.
    const isResolved = hasOnePath && target.includes('..');
    await expect(isResolved, { target, fields: [bound, prove(target.split(/[#\\]/)[0] ?? '')] });
    await expect(false, { target, fields: [bound, prove(OTHER_PATH)] });
  }

  for (const hosts of STRANGE_HOSTS) {
    await expect(hosts.length < 2, { target: path, hosts, fields: [bearer] });
  }
  for (const target of [
    `ws://${HOST}${path}`,
    `http://b${path}`,
    `//b${path}`,
    '*',
    'x',
    '?',
    `http:/${path}`,
  ]) {
    await expect(true, { target, fields: [bearer] });
  }
  // Of such a host, URLs have a shorter one than the field.
  for (const short of ['a', 'a:80', 'a%2e']) {
    const inFront = `/xyz${path}`;
    await expect(hasOnePath, { target: inFront, hosts: [short], fields: [bound, prove(inFront)] });
  }
  // The fields and the proof by themselves are good.
  for (const host of [HOST, 'a']) {
    const good = await exchange(port, { target: path, hosts: [host], fields: [bound, prove(path)] });
    const isGood =
      refusesShortHosts && host !== HOST ? / 400 /.test(good.slice(0, 14)) : good.includes('test-user');
    if (!isGood) problems.push(`a valid proof, host ${host}: ${good.slice(0, 200)}`);
  }
  return problems;
}

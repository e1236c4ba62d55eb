/* What each server is asked, and what it answers when the gate stands in front of it. */
import { createHmac } from 'node:crypto';
import { request, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { createProofKey, type TestIssuer } from '../../../src/testing.ts';

export const NONCE_SECRET = 'n'.repeat(32);

/** An issuer that the gates trust, whose keys cannot be had. */
export const DOWN = { name: 'down', domain: 'down.test' };

/** `challenge` is the scheme whose challenge has the error, or else the first scheme. */
type Answer = readonly [status: number, isGreeted: boolean, challenge: string | null, hasNonce: boolean];

const EXPECTED: Readonly<Record<string, Answer>> = {
  'no token': [401, false, 'Bearer', false],
  'a token without the scope': [403, false, 'Bearer', false],
  'a valid token': [200, true, null, false],
  'a proof without a nonce': [401, false, 'DPoP', true],
  'a proof': [200, true, null, false],
  'the same proof again': [401, false, 'DPoP', false],
  'a proof with a nonce that is about to end': [200, true, null, true],
  'a proof for another path': [401, false, 'DPoP', false],
  'a dot segment': [400, false, 'Bearer', false],
  'a token whose keys cannot be had': [503, false, null, false],
  'a post with the scope to read': [403, false, 'Bearer', false],
  'a post with the scope to write': [200, true, null, false],
};

/** The answers to a dot segment, by what the server does with it before the gate. */
const DOTS: Readonly<Record<string, Answer>> = {
  resolved: [200, true, null, false],
  'not found': [404, false, null, false],
};

export interface Target {
  readonly url: string;
  /** As the client sees it. */
  readonly publicUrl: string;
  readonly path: string;
  /** With its question mark, if the server needs one. */
  readonly query?: string;
  /** Whether posts need the scope to write. */
  readonly hasPosts?: boolean | undefined;
  /** One of `DOTS`, if the gate does not see dot segments. */
  readonly dots?: string | undefined;
  /** Whether the server shows only the first of two Authorization fields, as Node's `headers` do. */
  readonly hidesRepetition?: boolean;
  /** Sent with every request. */
  readonly fields?: Fields;
}

type Fields = Readonly<Record<string, string | readonly string[]>>;

/** Sends the path as it is written; `fetch` would resolve it. The response may be an upgrade. */
export function send(url: string, path: string, fields: Fields, method = 'GET'): Promise<IncomingMessage> {
  const { hostname, port } = new URL(url);
  const headers = fields as OutgoingHttpHeaders;
  return new Promise((resolve, reject) => {
    const asked = request({ hostname, port, path, headers, method }, resolve).once('error', reject);
    asked.once('upgrade', (response, socket) => resolve(response.once('close', () => socket.destroy())));
    asked.end();
  });
}

/** Greets the subject, or begins what was asked for. */
async function isGreeting(response: IncomingMessage): Promise<boolean> {
  if (response.statusCode === 101) return response.destroy().destroyed;

  const text = (await response.setEncoding('utf8').toArray()).join('');
  return /test-user|"sid"/.test(text);
}

/** The nonce of the previous minute. It is still accepted, and the response offers the next one. */
export function lastNonce(): string {
  const minute = `gatehouse DPoP nonce ${minuteNow() - 1}`;
  return createHmac('sha256', NONCE_SECRET).update(minute).digest('base64url');
}

const minuteNow = () => Math.floor(Date.now() / 60_000);

/**
 * One line for each answer that is not as expected. Asks again when a minute ended meanwhile: with the next
 * minute comes a new nonce, which the server may offer with any answer.
 */
export async function problemsOf(target: Target, issuer: TestIssuer): Promise<readonly string[]> {
  const minute = minuteNow();
  const problems = await askAll(target, issuer);
  return problems.length === 0 || minute === minuteNow() ? problems : askAll(target, issuer);
}

async function askAll(target: Target, issuer: TestIssuer): Promise<readonly string[]> {
  const key = createProofKey();
  const token = issuer.boundToken(key, { scope: 'read:orders' });
  const good = issuer.bearer({ scope: 'read:orders' });
  let nonce = '';

  const prove = (path = target.path) => {
    const claims = nonce === '' ? {} : { nonce };
    const dpop = issuer.proof(key, { method: 'GET', url: target.publicUrl + path }, token, claims);
    return { authorization: `DPoP ${token}`, dpop };
  };

  const problems: string[] = [];

  async function expect(what: string, headers: Fields, path = target.path, method = 'GET') {
    const { url, query = '', fields } = target;
    const response = await send(url, path + query, { ...fields, ...headers }, method);
    const isGreeted = await isGreeting(response);
    const fresh = response.headers['dpop-nonce'];
    nonce = String(fresh ?? nonce);
    const challenge = response.headers['www-authenticate'];
    const scheme = headers.dpop === undefined ? 'Bearer' : 'DPoP';
    const used = challenge?.includes(`${scheme} `) ? scheme : null;
    const answer: Answer = [Math.max(200, response.statusCode ?? 0), isGreeted, used, fresh !== undefined];
    const expected = (what === 'a dot segment' ? DOTS[target.dots ?? ''] : undefined) ?? EXPECTED[what];
    const isComplete = response.statusCode !== 503 || response.headers['retry-after'] !== undefined;
    if (isDeepStrictEqual(answer, expected) && isComplete) return;

    problems.push(`${what}: ${JSON.stringify(answer)}`);
  }

  await expect('no token', {});
  await expect('a token without the scope', issuer.bearer());
  await expect('a valid token', good);
  await expect('a token whose keys cannot be had', issuer.bearer({ iss: `https://${DOWN.domain}/` }));
  const { authorization } = good;
  const { fields, query = '' } = target;
  const twice = await send(target.url, target.path + query, {
    ...fields,
    authorization: [authorization, authorization],
  });
  const passes = (await isGreeting(twice)) || Number(twice.statusCode) < 400;
  if (passes !== (target.hidesRepetition ?? false)) problems.push(`two tokens: ${twice.statusCode}`);
  if (target.hasPosts) {
    await expect('a post with the scope to read', good, target.path, 'POST');
    const writer = issuer.bearer({ scope: 'write:orders' });
    await expect('a post with the scope to write', writer, target.path, 'POST');
  }
  await expect('a proof without a nonce', prove());
  const proven = prove();
  await expect('a proof', proven);
  await expect('the same proof again', proven);
  nonce = lastNonce();
  await expect('a proof with a nonce that is about to end', prove());
  await expect('a proof for another path', prove('/api/orders/2'));
  const [, mount = ''] = /^(.*)\/api\/orders$/.exec(target.path) ?? [];
  if (mount !== '') await expect('a proof for another path', prove('/api/orders'));
  await expect('a dot segment', good, `${target.path}/../orders`);
  return problems;
}

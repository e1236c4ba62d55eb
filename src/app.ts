/*
 * The pipeline: request → credentials → token → sender → guards → handler → reply, and the one catch for refusals.
 * Trusts its parts. Promises: every request gets exactly one answer; no promise is awaited while keys are held and the
 * handler is synchronous; only a bug is a 500, and it tells nothing.
 * Does not own sockets, signals or limits: listener.ts and server.ts do.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { refusalReply, type ChallengeRules } from './http/challenge.ts';
import type { Cors } from './http/cors.ts';
import { reply, send, type Reply } from './http/reply.ts';
import { pathSegments, Router, targetPath, type Match } from './http/router.ts';
import { KeysPending } from './keys/key-set.ts';
import { describeBug, type Log } from './log.ts';
import { deadEnd, refuseRequest, Refused } from './refusal.ts';
import type { Access, PrefixRule, Row } from './route.ts';
import { checkCaller, type Caller, type CallerRules } from './sender/caller.ts';
import { acceptedScheme, fieldValues, parseCredentials } from './sender/credentials.ts';
import type { TokenVerifier } from './token/verify.ts';

/** What an app is made of. */
export interface AppParts {
  readonly rows: readonly Row[];
  /** Rules for prefixes, decided before rows are looked for. */
  readonly policy: readonly PrefixRule[];
  readonly verifyToken: TokenVerifier;
  readonly rules: CallerRules & ChallengeRules;
  readonly cors: Cors;
  readonly log: Log;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** True once the service is stopping: every answer then closes its connection. */
  readonly isStopping: () => boolean;
}

export interface App {
  /** Answers one request of `node:http`. Never throws. */
  answer(request: IncomingMessage, response: ServerResponse): void;
  /** The reply to what is turned away before it is a request that can be answered. */
  refuse(request: IncomingMessage | undefined, refused: Refused): Reply;
}

const SERVER_ERROR: Reply = reply(500, { error: 'server_error', message: 'Internal Server Error' });

/** RFC 9110 §7.2, RFC 3986 §3.2.2: a host name, an IPv4 or a bracketed IPv6 address, and an optional port. */
const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/** Builds the app. Throws an `Error` when rows overlap. */
export function createApp(parts: AppParts): App {
  const router = new Router(parts.rows);
  const { rules, log, cors } = parts;

  function respond(request: IncomingMessage, response: ServerResponse, waits: number): void {
    const finish = (answer: Reply) => {
      if (!response.destroyed) send(request, response, answer, cors.headers(request), parts.isStopping());
    };
    try {
      const preflight = cors.preflight(request);
      if (preflight !== undefined) return send(request, response, preflight, [], parts.isStopping());
      const body = answer(request, waits);
      if (body instanceof Promise) body.then((later) => finish(reply(200, later)), (failure) => finish(failed(request, failure)));
      else finish(reply(200, body));
    } catch (failure) {
      if (failure instanceof KeysPending) void failure.settled.then(() => respond(request, response, waits + 1));
      else finish(failed(request, failure));
    }
  }

  function answer(request: IncomingMessage, waits: number): object | Promise<object> {
    const nowMillis = parts.now();
    const authenticate = ({ credentials }: Access<unknown>) =>
      credentials === 'ignored' ? undefined : identify(request.rawHeaders, nowMillis, waits);
    const { row, parameters } = route(request, authenticate);
    return row.answer(authenticate(row.access), parameters, nowMillis);
  }

  /** Credentials → token → sender. Nobody is identified when there are no credentials. */
  function identify(rawHeaders: readonly string[], nowMillis: number, waits: number): Caller | undefined {
    const credentials = parseCredentials(rawHeaders, rules.dpopMode);
    if (credentials === undefined) return undefined;
    return checkCaller(parts.verifyToken(credentials.token, nowMillis, waits), credentials, rules);
  }

  function route(request: IncomingMessage, authenticate: (access: Access<unknown>) => Caller | undefined): Match<Row> {
    // RFC 9112 §3.2
    const hosts = fieldValues(request.rawHeaders, 'host');
    if (hosts.length !== 1 || !HOST.test(hosts[0] ?? '')) throw refuseRequest('host-refused');
    // Stricter: RFC 9112 §3.2.2 would have us read the absolute form too.
    const path = targetPath(request.url ?? '');
    if (path === undefined) throw refuseRequest('target-refused');
    const segments = pathSegments(path);
    if (segments === undefined) throw deadEnd('not_found');
    for (const { prefix, access } of parts.policy) {
      if (prefix.every((segment, index) => segments[index] === segment)) access.admit(authenticate(access));
    }
    const match = router.find(segments);
    if (match === undefined) throw deadEnd('not_found');
    if (request.method !== 'GET' && request.method !== 'HEAD') throw deadEnd('method_not_allowed');
    return match;
  }

  function failed(request: IncomingMessage, failure: unknown): Reply {
    if (failure instanceof Refused) return refuse(request, failure);
    log('request failed', describeBug(failure));
    return SERVER_ERROR;
  }

  function refuse(request: IncomingMessage | undefined, { refusal }: Refused): Reply {
    const [authorization] = fieldValues(request?.rawHeaders ?? [], 'authorization');
    const used = authorization === undefined ? undefined : acceptedScheme(authorization, rules.dpopMode);
    const refused = refusalReply(refusal, used, rules);
    log('request refused', { status: refused.status, reason: refusal.reason });
    return refused;
  }

  return { answer: (request, response) => respond(request, response, 0), refuse };
}

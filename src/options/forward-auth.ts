// Forward-auth: a proxy asks whether a request may pass to the server behind it. Trusts that every client is
// that proxy. Promises: nothing passes without a route, or by a path that servers read in several ways. Other
// requests reach `ownRoutes` only.
import { isListOf, catching } from '../verify/base/encoding.ts';
import { refuse, Refused, refuseMethod } from '../verify/base/refusal.ts';
import { claimsOf, type Caller } from '../verify/caller.ts';
import { fieldValues, isAmbiguous, readFacts, forwardedUri } from '../verify/request/facts.ts';
import { NO_CONTENT } from '../gate/replies/reply.ts';
import { extendRecord, type Early } from '../gate/decide.ts';
import type { Exchange } from '../service/request/exchange.ts';
import type { Readers } from '../service/request/pipeline.ts';
import { HandlerReply } from '../service/routes/handler-result.ts';
import { withHandler, type Route, type Routes } from '../service/routes/route.ts';
import { createRouter } from '../service/routes/router.ts';

const READS = ['GET', 'HEAD'];

/** A method (RFC 9110 §5.6.2, §9.1), and a target that begins with a path. */
const QUESTION = /^([!#$%&'*+.^_`|~\w-]+) (\/[^ ?]*)(?:\?[^ ]*)?$/;

const PRINTABLE = /^[!-~](?:[ -~]*[!-~])?$/;
const UP_TO_8_KIB = /^.{1,8192}$/;

/** RFC 6749 §3.3 */
const SCOPE = /^[!#-[\]-~]+$/;

const NOBODY = {};

/** By claims: a cached token always has the same object. */
const replies = new WeakMap<object, HandlerReply>();

/** Runs in place of `upstream`: tells the server who the caller is. */
function admit({ caller }: { readonly caller: Caller<unknown> | undefined }) {
  const key = caller === undefined ? NOBODY : claimsOf(caller);
  const known = replies.get(key);
  if (known !== undefined) return known;

  const fields = [...NO_CONTENT.fields, ...identityOf(caller), 'Content-Length', '0'];
  const reply = new HandlerReply({ status: 200, fields, content: '' });
  replies.set(key, reply);
  return reply;
}

/** Always all four: for a missing one, a proxy may pass on the client's field or a placeholder. */
function identityOf(caller?: Caller<unknown>) {
  const { subject, issuer, scopes = [] } = caller ?? {};
  const claims = caller && claimsOf(caller);
  // Before Node 26, JSON.stringify fails at 5,000 levels, which would be over 8 KiB anyway.
  const json = claims && catching('RangeError', () => JSON.stringify(claims));
  const encoded = json && Buffer.from(json).toString('base64url');

  const identity = {
    'X-Auth-Subject': textIf(PRINTABLE, subject),
    'X-Auth-Issuer': textIf(PRINTABLE, issuer),
    'X-Auth-Scope': isListOf(SCOPE, scopes) ? scopes.join(' ') : '',
    'X-Auth-Claims': textIf(UP_TO_8_KIB, encoded),
  };
  return Object.entries(identity).flat();
}

const textIf = (pattern: RegExp, text = '') => (pattern.test(text) ? text : '');

/** The request's own method and path if a path follows `/forward-auth`, else those in header fields. */
function questionIn({ method, headers }: Exchange['request'], rest: string) {
  // Node joins repeated fields with a comma and a space: never a method or a target.
  const { 'x-forwarded-method': forwarded = '', 'x-forwarded-uri': uri = '' } = headers;
  if (rest === '') return QUESTION.exec(`${forwarded} ${uri}`);

  // A proxy that asks in fields, at an address with a slash too many, would ask about `/`.
  const isOther = 'x-forwarded-uri' in headers && String(uri).split('?', 1)[0] !== rest;
  return isOther ? null : QUESTION.exec(`${method} ${rest}`);
}

/** Read only where a proof is checked. */
function askedUri({ headers }: Exchange['request'], path: string) {
  const { 'x-forwarded-proto': scheme = '', 'x-forwarded-host': host = '' } = headers;
  return forwardedUri(String(scheme), String(host), path);
}

function readQuestion(request: Exchange['request']) {
  const facts = readFacts(request);
  if (facts instanceof Refused) return facts;

  const [, rest] = /^\/forward-auth($|\/.*)/.exec(facts.path) ?? [];
  if (rest === undefined) return facts;
  if (rest === '' && !READS.includes(facts.method)) return refuseMethod(READS);

  const [, method = '', path = ''] = questionIn(request, rest) ?? [];
  if (path === '') return refuse('question-malformed');

  const { rawHeaders, socket } = facts;
  return { method, path, rawHeaders, socket, uri: () => askedUri(request, path) };
}

const PREFLIGHT = { ...NO_CONTENT, fields: [...NO_CONTENT.fields, ...identityOf()] };

/** Reads auth requests about `served`; requests for the service itself go to `ownRoutes`. */
export function createQuestionReaders(
  served: Routes,
  ownRoutes: readonly Route[],
  earlyOfService?: Early,
  ownPaths?: readonly string[],
): Readers {
  const routes = served.routes.map((route) => withHandler(route, admit));
  const matchForwarded = createRouter(routes, served.rules, [], ownPaths);
  const matchOwn = createRouter([], [], ownRoutes);

  const matchRoute: Readers['matchRoute'] = (path, { uri }) => {
    if (uri === undefined) return matchOwn(path);

    // No route is at a path that is empty.
    return matchForwarded(isAmbiguous(path) ? '' : path);
  };

  /** A proxy takes 204 as "pass": without this, every preflight would pass. */
  const early: Early = (facts) => {
    const replied = earlyOfService?.(facts);
    const { rawHeaders, path, uri } = facts;
    if (replied?.reply !== NO_CONTENT) return uri ? undefined : replied;

    const asked = fieldValues(rawHeaders, 'access-control-request-method').join();
    const method = asked === 'HEAD' ? 'GET' : asked;
    const hasRoute = matchRoute(path, facts)?.matches.some(({ route }) => route.method === method);
    return hasRoute && replied.crossOrigin?.length ? extendRecord(replied, { reply: PREFLIGHT }) : undefined;
  };

  return { readFacts: readQuestion, early, matchRoute };
}

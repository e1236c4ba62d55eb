// The checks alone, for a server that exists: Host → path → early replies → credentials → token → sender →
// access. A refusal is as our own listener would send it. Where the access ignores credentials, only the form
// of the request is checked. Reads no body, adds nothing to the request, and does not bound what the server
// lets in.
import type { ServerResponse } from 'node:http';
import { UsageError } from '../verify/base/events.ts';
import { refuse, Refused } from '../verify/base/refusal.ts';
import { pairsOf, type Field, type Reply } from './reply.ts';
import { refusalOf, type Access } from './access.ts';
import { ConfigurationError } from './configuration-error.ts';
import type { RequestHead, RequestRecord } from './record.ts';
import type { Identification } from './identify.ts';
import { nonceFields, type Replies } from './replies.ts';

/** What the gate reads of a request; Node's own fits. `rawHeaders` has names and values in turn, as sent. */
export interface GateRequest extends RequestHead {
  readonly socket?: unknown;
}

/** A caller who may pass. `headers` belong on the host's response: a `DPoP-Nonce` when one is due. */
export type Admission<Admitted> = Readonly<{ caller: Admitted; headers: Field[] }>;

/**
 * The response to a caller who may not pass. `body` is JSON text; with 204 it is `null`, as the `Response` of
 * Fetch demands. Each scheme has its own `WWW-Authenticate` field.
 */
export type RefusalReply = Readonly<{ status: number; headers: Field[]; body: string | null }>;

/** The result of `check`; tell them apart by `'refusal' in verdict`. */
export type Verdict<Admitted> = Admission<Admitted> | Readonly<{ refusal: RefusalReply }>;

const TOO_LATE = 'the response has begun before admit was through; await it';

/** Node's own limit where a server sets no `maxHeadersCount`. */
const NODE_MAX_FIELDS = 1_000;

/** Refuses what the server behind could read otherwise than the checks do, whatever the access. */
function refuseAmbiguous({ url = '', originalUrl = url, rawHeaders }: GateRequest) {
  // RFC 9113 §8.3.1: in HTTP/2 `:authority` and Host can disagree.
  const isOfHttp2 = rawHeaders.some((name, index) => index % 2 === 0 && name.startsWith(':'));
  if (isOfHttp2) return refuse('host-refused');

  // RFC 3986 §5.2.4: a proof holds for the path without dot segments; the server may route with them.
  const [path = ''] = originalUrl.split('?', 1);
  const isDot = (segment: string) => /^(?:\.|%2e){1,2}$/i.test(segment);
  return path.split('/').some(isDot) ? refuse('target-refused') : undefined;
}

/** A route with such an access would stop the start. */
function requireSound({ problems = [] }: Access<unknown>) {
  if (problems.length > 0) throw new ConfigurationError(problems);
}

const describe = ({ status, fields, content }: Reply): RefusalReply => ({
  status,
  headers: pairsOf(fields),
  body: String(content) || null,
});

function send(response: ServerResponse, { status, headers, body }: RefusalReply) {
  // `writeHead` would lose the second challenge once a framework has set a field.
  for (const [name] of headers) response.removeHeader(name);
  for (const [name, value] of headers) response.appendHeader(name, value);
  response.statusCode = status;
  response.end(body);
}

/** Node drops fields over its limit silently: a second Authorization may be among them. */
function mayLackFields({ rawHeaders, socket }: GateRequest) {
  const maxFields = Object(socket).server?.maxHeadersCount ?? NODE_MAX_FIELDS;
  return maxFields !== 0 && rawHeaders.length >= maxFields * 2;
}

/** `refused` is whatever was returned or thrown instead of a caller. */
type Decision<Admitted> =
  Readonly<{ caller: Admitted }> | Readonly<{ early: Reply }> | Readonly<{ refused: unknown }>;

export function createGateChecks(identification: Identification, replies: Replies) {
  const { readFacts, replyEarly, identify } = identification;

  async function decide<Admitted>(
    access: Access<Admitted>,
    record: RequestRecord,
  ): Promise<Decision<Admitted>> {
    const facts = readFacts(record);
    if (facts instanceof Refused) return { refused: facts };

    const early = replyEarly(record, facts);
    if (early instanceof Refused) return { refused: early };
    if (early !== undefined) return { early };

    const caller = await identify(record, facts);
    if (caller instanceof Refused) return { refused: caller };

    const refused = refusalOf([{ access }], caller, true);
    return refused === undefined ? { caller: access.admit(caller) } : { refused };
  }

  function decideUnread<Admitted>(request: GateRequest, access: Access<Admitted>) {
    const refused = refuseAmbiguous(request);
    if (refused !== undefined) return { refused };
    if (access.credentials === 'ignored') return { caller: access.admit(undefined) };
    return mayLackFields(request) ? { refused: refuse('header_fields_too_large') } : undefined;
  }

  async function check<Admitted>(request: GateRequest, access: Access<Admitted>): Promise<Verdict<Admitted>> {
    requireSound(access);
    const record: RequestRecord = { request, arrivedAt: 0, rules: [{ access }] };
    const decision: Decision<Admitted> =
      decideUnread(request, access) ??
      (await decide(access, record).catch((error: unknown) => ({ refused: error })));
    if ('caller' in decision) return { caller: decision.caller, headers: pairsOf(nonceFields(record)) };

    const reply = 'early' in decision ? decision.early : replies.replyToError(decision.refused, record);
    return { refusal: describe(replies.finish(reply, record)) };
  }

  async function admit<Admitted>(request: GateRequest, response: ServerResponse, access: Access<Admitted>) {
    const verdict = await check(request, access);
    if (response.headersSent) {
      // The host's time limit has passed, or an `await` is missing. Logged only: a throw would end processes.
      const record: RequestRecord = { request, arrivedAt: 0 };
      replies.finish(replies.replyToError(new UsageError(TOO_LATE), record), record);
      return undefined;
    }

    if ('refusal' in verdict) {
      send(response, verdict.refusal);
      return undefined;
    }

    for (const [name, value] of verdict.headers) response.setHeader(name, value);
    return verdict;
  }

  return {
    /**
     * Checks a request. Rejects only for an access that would stop a start.
     *
     * @example const verdict = await gate.check(request, needs(scope('read:orders')));
     */
    check,
    /**
     * Checks a request and sends the refusal, if any, as the service would. Resolves to `undefined` then, and
     * when the response has begun meanwhile.
     *
     * @example const admission = await gate.admit(request, response, needs(scope('read:orders')));
     */
    admit,
  };
}

// The checks alone, for a server that exists: Host → path → credentials → token → sender → access, and the
// refusal as our own listener would give it. Where an access ignores credentials it is asked at once. Reads
// no body, adds nothing to the request. Does not bound what the host's server lets in.
import type { ServerResponse } from 'node:http';
import { UsageError } from '../verify/base/events.ts';
import { refuse, Refused } from '../verify/base/refusal.ts';
import { pairsOf, type Field, type Reply } from './reply.ts';
import { refusalOf, type Access } from './access.ts';
import { ConfigurationError } from './configuration-error.ts';
import type { RequestHead, RequestRecord } from './record.ts';
import type { Identification } from './identify.ts';
import { nonceFields, type Replies } from './replies.ts';

/**
 * What of a request the gate reads; Node's own fits. `rawHeaders` lists names and values in turn, as they
 * came.
 */
export interface GateRequest extends RequestHead {
  readonly socket?: unknown;
}

/** A caller who may pass. `headers` are for the host's answer: a `DPoP-Nonce` when one is due. */
export type Admission<Admitted> = Readonly<{ caller: Admitted; headers: Field[] }>;

/**
 * What a caller who may not pass is to be told; `body` is JSON text, or `null` with 204: then `Response` of
 * Fetch takes no other. A challenge is a field for each scheme.
 */
export type RefusalReply = Readonly<{ status: number; headers: Field[]; body: string | null }>;

/** What `check` gives: `'refusal' in verdict` tells which. */
export type Verdict<Admitted> = Admission<Admitted> | Readonly<{ refusal: RefusalReply }>;

const TOO_LATE = 'the response has begun before admit was through; await it';

/** How many fields Node keeps of a request, unless the server's `maxHeadersCount` says otherwise. */
const NODE_MAX_FIELDS = 1_000;

/**
 * What the server behind could read otherwise than the checks do, whatever the access asks for. RFC 3986
 * §5.2.4: it routes a path with dot segments as it stands, or without them, while a proof holds for the
 * latter. A field that begins with `:` is of HTTP/2 (RFC 9113 §8.3.1), where `:authority` and Host can
 * disagree.
 */
function oddityOf({ url = '', originalUrl = url, rawHeaders }: GateRequest) {
  const isOfHttp2 = rawHeaders.some((name, index) => index % 2 === 0 && name.startsWith(':'));
  if (isOfHttp2) return refuse('host-refused');

  const [path = ''] = originalUrl.split('?', 1);
  const isDot = (segment: string) => /^(?:\.|%2e){1,2}$/i.test(segment);
  return path.split('/').some(isDot) ? refuse('target-refused') : undefined;
}

/** A route with such an access would have stopped the start. */
function demandSound({ faults = [] }: Access<unknown>) {
  if (faults.length > 0) throw new ConfigurationError(faults);
}

const describe = ({ status, fields, content }: Reply): RefusalReply => ({
  status,
  headers: pairsOf(fields),
  body: String(content) || null,
});

function send(response: ServerResponse, { status, headers, body }: RefusalReply) {
  // `writeHead` would lose a second challenge where a framework has set a field before.
  for (const [name] of headers) response.removeHeader(name);
  for (const [name, value] of headers) response.appendHeader(name, value);
  response.statusCode = status;
  response.end(body);
}

/** A second Authorization field may be among those that Node has left out. */
function mayLackFields({ rawHeaders, socket }: GateRequest) {
  const maxFields = Object(socket).server?.maxHeadersCount ?? NODE_MAX_FIELDS;
  return maxFields !== 0 && rawHeaders.length >= maxFields * 2;
}

/** What the gate says of a request. */
type Decision<Admitted> =
  Readonly<{ caller: Admitted }> | Readonly<{ early: Reply }> | Readonly<{ refused: unknown }>;

/** The gate over what identifies a caller, and what a refused one is told. */
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
    const refused = caller instanceof Refused ? caller : refusalOf([{ access }], caller, true);
    return refused || caller instanceof Refused ? { refused } : { caller: access.admit(caller) };
  }

  /** What needs no look at the credentials. */
  function decideEarly<Admitted>(request: GateRequest, access: Access<Admitted>) {
    const odd = oddityOf(request);
    if (odd !== undefined) return { refused: odd };
    if (access.credentials === 'ignored') return { caller: access.admit(undefined) };
    return mayLackFields(request) ? { refused: refuse('header_fields_too_large') } : undefined;
  }

  async function check<Admitted>(request: GateRequest, access: Access<Admitted>): Promise<Verdict<Admitted>> {
    demandSound(access);
    const record: RequestRecord = { request, arrivedAt: 0, rules: [{ access }] };
    const decided: Decision<Admitted> =
      decideEarly(request, access) ??
      (await decide(access, record).catch((error: unknown) => ({ refused: error })));
    if ('caller' in decided) return { caller: decided.caller, headers: pairsOf(nonceFields(record)) };

    const reply = 'early' in decided ? decided.early : replies.replyToFailure(decided.refused, record);
    return { refusal: describe(replies.finish(reply, record)) };
  }

  async function admit<Admitted>(request: GateRequest, response: ServerResponse, access: Access<Admitted>) {
    const verdict = await check(request, access);
    if (response.headersSent) {
      // For the log alone: thrown, it would end many a process. The host's time limit has passed, or an
      // `await` is missing.
      const record: RequestRecord = { request, arrivedAt: 0 };
      replies.finish(replies.replyToFailure(new UsageError(TOO_LATE), record), record);
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
     * Judges a request. Rejects only for an access that no route could have.
     *
     * @example const verdict = await gate.check(request, needs(scope('read:orders')));
     */
    check,
    /**
     * The same, and answers who may not pass, as the service itself would: then it gives `undefined`, and
     * when somebody else has answered meanwhile.
     *
     * @example const admission = await gate.admit(request, response, needs(scope('read:orders')));
     */
    admit,
  };
}

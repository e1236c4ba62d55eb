// The checks alone, for a server that exists: Host → path → credentials → token → sender → access, and the
// refusal as our own listener would give it. Where an access ignores credentials it is asked at once. Reads
// no body, adds nothing to the request. Does not bound what the host's server lets in.
import type { ServerResponse } from 'node:http';
import { UsageError } from '../verify/base/events.ts';
import { refuse, Refused } from '../verify/base/refusal.ts';
import { HandlerReply } from '../service/routes/handler-reply.ts';
import { pairsOf, type Field } from './reply.ts';
import { refusalOf, type Access } from './access.ts';
import { ConfigurationError } from '../process/settings/load.ts';
import type { Head, Learnt } from '../service/http/exchange.ts';
import { nonceFields, type Front } from './front.ts';

/**
 * What of a request the gate reads; Node's own fits. `rawHeaders` lists names and values in turn, as they
 * came.
 */
export interface GateRequest extends Head {
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

/** The gate's checks over a front half. */
export function createGateChecks(front: Front) {
  function identify({ rawHeaders, socket }: GateRequest, learnt: Learnt) {
    const maxFields = Object(socket).server?.maxHeadersCount ?? NODE_MAX_FIELDS;
    // A second Authorization field may be among those that Node has left out.
    const isWhole = maxFields === 0 || rawHeaders.length < maxFields * 2;
    if (!isWhole) return refuse('header_fields_too_large');

    const facts = front.present(learnt);
    const isPresented = !(facts instanceof Refused || facts instanceof HandlerReply);
    return isPresented ? front.identify(learnt, facts) : facts;
  }

  /** Whom the access admits, or what they are told instead. */
  async function decide<Admitted>(request: GateRequest, access: Access<Admitted>, learnt: Learnt) {
    const refused = oddityOf(request);
    if (refused !== undefined) return { refused };

    const isOpen = access.credentials === 'ignored';
    const caller = isOpen ? undefined : await identify(request, learnt);
    if (caller instanceof Refused || caller instanceof HandlerReply) return { refused: caller };

    const missing = refusalOf([{ access }], caller, true);
    return missing ? { refused: missing } : { caller: access.admit(caller) };
  }

  async function check<Admitted>(request: GateRequest, access: Access<Admitted>): Promise<Verdict<Admitted>> {
    const { faults = [] } = access;
    // A route would have stopped the start.
    if (faults.length > 0) throw new ConfigurationError(faults);

    const learnt: Learnt = { request, arrivedAt: 0, rules: [{ access }] };
    const decided = await decide(request, access, learnt).catch((failure: unknown) => ({ refused: failure }));
    if ('caller' in decided) return { caller: decided.caller, headers: pairsOf(nonceFields(learnt)) };

    const { status, fields, content } = front.turnAway(decided.refused, learnt);
    return { refusal: { status, headers: pairsOf(fields), body: String(content) || null } };
  }

  async function admit<Admitted>(request: GateRequest, response: ServerResponse, access: Access<Admitted>) {
    const verdict = await check(request, access);
    if (response.headersSent) {
      // For the log alone: thrown, it would end many a process. The host's time limit has passed, or an
      // `await` is missing.
      front.turnAway(new UsageError(TOO_LATE), { request, arrivedAt: 0 });
      return undefined;
    }

    if ('refusal' in verdict) {
      const { status, headers, body } = verdict.refusal;
      // `writeHead` would lose a second challenge where a framework has set a field before.
      for (const [name] of headers) response.removeHeader(name);
      for (const [name, value] of headers) response.appendHeader(name, value);
      response.statusCode = status;
      response.end(body);
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

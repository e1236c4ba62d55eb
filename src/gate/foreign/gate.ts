// Just the checks, for an existing server: Host → path → early replies → credentials → token → sender →
// access. An access that ignores credentials checks only the form of the request. Reads no body, adds nothing
// to the request, and does not bound what the server lets in.
import type { ServerResponse } from 'node:http';
import { attempt, type Clock, type MaybePromise } from '../../verify/base/clock.ts';
import { UsageError } from '../../verify/base/events.ts';
import { Refused } from '../../verify/base/refusal.ts';
import { callerAt, isGenuine, schemeOf, type Caller } from '../../verify/caller.ts';
import { readFacts } from '../../verify/request/facts.ts';
import { decideAccess, type Decide } from '../decide.ts';
import { turnAway, type Early, type RequestRecord } from '../record.ts';
import { nonceFields, type Replies } from '../replies/refusal-replies.ts';
import { pairsOf, type Field, type Reply } from '../replies/reply.ts';
import { isAccess, type Access } from '../rules/access.ts';
import { refuseForm, requestOf, type FetchRequest, type GateRequest } from './request.ts';

/** A caller who may pass. `headers` are for your server's response: a `DPoP-Nonce` when one is due. */
export type Admission<Admitted> = Readonly<{ caller: Admitted; headers: Field[] }>;

/**
 * The response to a caller who may not pass. `body` is JSON text, or `null` for 204, as Fetch demands. Each
 * scheme has its own `WWW-Authenticate` field.
 */
export type RefusalReply = Readonly<{ status: number; headers: Field[]; body: string | null }>;

/** Without strict null checks, TypeScript cannot narrow a verdict, so this has `headers` too. */
type Refusal = Readonly<{ refusal: RefusalReply; caller?: undefined; headers?: undefined }>;

/** Test `verdict.refusal`. */
export type Verdict<Admitted> = (Admission<Admitted> & Readonly<{ refusal?: undefined }>) | Refusal;

/** Test `authorization.refusal`. */
export type Authorization<Admitted> = Readonly<{ caller: Admitted; refusal?: undefined }> | Refusal;

const TOO_LATE = 'the response began before admit was done; await admit';

function requireAccess(access: unknown) {
  if (!isAccess(access)) throw new TypeError('the gate needs an access, such as needs()');
}

const describe = ({ status, fields, content }: Reply): RefusalReply => ({
  status,
  headers: pairsOf(fields),
  body: String(content) || null,
});

function send(response: ServerResponse, { status, headers, body }: RefusalReply) {
  // `writeHead` would lose the second challenge if a framework has set a field.
  for (const [name] of headers) response.removeHeader(name);
  for (const [name, value] of headers) response.appendHeader(name, value);
  response.statusCode = status;
  response.end(body);
}

interface GateParts {
  readonly early: Early;
  readonly decide: Decide;
  readonly replies: Replies;
  readonly clock: Clock;
}

export interface GateMethods {
  /**
   * Checks a request. Rejects with a `TypeError` for anything but a request and an access.
   *
   * @example const verdict = await gate.check(request, needs(scope('read:orders')));
   */
  readonly check: <Admitted>(
    request: GateRequest | FetchRequest,
    access: Access<Admitted>,
  ) => Promise<Verdict<Admitted>>;

  /**
   * Checks a further access for an admitted caller, such as the scopes that a body asks for. Checks neither
   * token nor proof again. Throws a `TypeError` for anything but a verified `Caller`, and for `open` or
   * anything but an access.
   *
   * @example const { refusal } = gate.authorize(caller, needs(scope('write:orders')));
   */
  readonly authorize: <Admitted>(caller: Caller, access: Access<Admitted>) => Authorization<Admitted>;

  /**
   * Checks a request and sends the refusal, if any. Resolves to `undefined` if it sent one, or if the
   * response had already begun.
   *
   * @example const admission = await gate.admit(request, response, needs(scope('read:orders')));
   */
  readonly admit: <Admitted>(
    request: GateRequest,
    response: ServerResponse,
    access: Access<Admitted>,
  ) => Promise<Admission<Admitted> | undefined>;
}

export function createGateMethods({ early, decide, replies, clock }: GateParts): GateMethods {
  function checkRequest(request: GateRequest, access: Access<unknown>): MaybePromise<RequestRecord> {
    const refused = refuseForm(request);
    if (refused !== undefined) return turnAway({}, refused);
    if (access.credentials === 'ignored') return {};

    const facts = readFacts(request);
    if (facts instanceof Refused) return turnAway({}, facts);

    return early(facts) ?? decide({ facts, demands: [access], isServed: true });
  }

  async function check<Admitted>(
    given: GateRequest | FetchRequest,
    access: Access<Admitted>,
  ): Promise<Verdict<Admitted>> {
    requireAccess(access);
    const request = requestOf(given);
    if (request instanceof Refused) {
      return { refusal: describe(replies.finish(turnAway({}, request), { rawHeaders: [] })) };
    }

    const record = await attempt(
      () => checkRequest(request, access),
      (error) => turnAway({}, error),
    );
    const isAdmitted = record.reason === undefined && record.reply === undefined;
    if (!isAdmitted) return { refusal: describe(replies.finish(record, request)) };

    return { caller: access.admit(record.caller), headers: pairsOf(nonceFields(record)) };
  }

  function authorize<Admitted>(caller: Caller, access: Access<Admitted>): Authorization<Admitted> {
    if (!isGenuine(caller)) {
      throw new TypeError('authorize needs a verified Caller');
    }
    requireAccess(access);
    if (access.credentials === 'ignored') throw new TypeError('authorize needs an access that is not open');

    const now = callerAt(caller, clock.now());
    const record = decideAccess({ demands: [access], isServed: true }, now);
    if (record.reason === undefined) return { caller: access.admit(caller) };

    const request = { rawHeaders: ['Authorization', schemeOf(caller)] };
    const replied = replies.complete(record, request);
    replies.observe({ request, arrivedAtMillis: 0 }, replied, replied.reply.status);
    return { refusal: describe(replied.reply) };
  }

  async function admit<Admitted>(request: GateRequest, response: ServerResponse, access: Access<Admitted>) {
    const verdict = await check(request, access);
    if (response.headersSent) {
      // The server timed out or did not await. A throw could end the process.
      replies.finish(turnAway({}, new UsageError(TOO_LATE)), request);
      return undefined;
    }

    if (verdict.refusal) {
      send(response, verdict.refusal);
      return undefined;
    }

    for (const [name, value] of verdict.headers) response.setHeader(name, value);
    return verdict;
  }

  return { check, authorize, admit };
}

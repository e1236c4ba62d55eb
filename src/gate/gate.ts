// Just the checks, for an existing server: Host → path → early replies → credentials → token → sender →
// access. An access that ignores credentials checks only the form of the request. Reads no body, adds nothing
// to the request, and does not bound what the server lets in.
import type { ServerResponse } from 'node:http';
import type { Clock } from '../verify/base/clock.ts';
import { UsageError } from '../verify/base/events.ts';
import { refuse, Refused } from '../verify/base/refusal.ts';
import { callerAt, isGenuine, schemeOf, type Caller } from '../verify/caller.ts';
import { pairsOf, type Field, type Reply } from './reply.ts';
import { isAccess, refusalOf, type Access } from './access.ts';
import type { Outcome } from './record.ts';
import {
  mayLackFields,
  refuseAmbiguous,
  requestOf,
  type FetchRequest,
  type GateRequest,
} from './gate-request.ts';
import type { Identification } from './identify.ts';
import { nonceFields, type Replies } from './replies.ts';

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

/** `caller` is the identified one; `admitted` is what the access returns for it. */
type Checked<Admitted> = Outcome | Readonly<{ admitted: Admitted; caller?: Caller | undefined }>;

export function createGateChecks(identification: Identification, replies: Replies, clock: Clock) {
  const { readFacts, replyEarly, identify } = identification;

  async function checkCaller<Admitted>(
    access: Access<Admitted>,
    request: GateRequest,
  ): Promise<Checked<Admitted>> {
    const rules = [{ access }];
    let caller: Caller | undefined;
    try {
      const facts = readFacts(request);
      if (facts instanceof Refused) return { refused: facts };

      const early = replyEarly(facts);
      if (early !== undefined) return early;

      const identified = await identify(facts);
      if (identified instanceof Refused) return { known: { facts, rules }, refused: identified };

      caller = identified;
      const refused = refusalOf(rules, caller, true);
      return refused === undefined
        ? { caller, admitted: access.admit(caller) }
        : { known: { rules, caller }, refused };
    } catch (refused) {
      return { known: { rules, caller }, refused };
    }
  }

  function checkForm<Admitted>(
    request: GateRequest,
    access: Access<Admitted>,
  ): Checked<Admitted> | undefined {
    const refused = refuseAmbiguous(request);
    if (refused !== undefined) return { refused };
    if (mayLackFields(request)) return { refused: refuse('header_fields_too_large') };
    return access.credentials === 'ignored' ? { admitted: access.admit(undefined) } : undefined;
  }

  async function check<Admitted>(
    given: GateRequest | FetchRequest,
    access: Access<Admitted>,
  ): Promise<Verdict<Admitted>> {
    requireAccess(access);
    const request = requestOf(given);
    if (request instanceof Refused) {
      return { refusal: describe(replies.finish({ refused: request }, { rawHeaders: [] })) };
    }

    const checked = checkForm(request, access) ?? (await checkCaller(access, request));
    if (!('admitted' in checked)) return { refusal: describe(replies.finish(checked, request)) };

    const { admitted, caller } = checked;
    return { caller: admitted, headers: pairsOf(nonceFields(caller)) };
  }

  /** A refusal, or what a guard threw. */
  function refusalNow(caller: Caller, access: Access<unknown>): unknown {
    try {
      return refusalOf([{ access }], callerAt(caller, clock.now()), true);
    } catch (error) {
      return error ?? new Error();
    }
  }

  function authorize<Admitted>(caller: Caller, access: Access<Admitted>): Authorization<Admitted> {
    if (!isGenuine(caller)) {
      throw new TypeError('authorize needs a verified Caller');
    }
    requireAccess(access);
    if (access.credentials === 'ignored') throw new TypeError('authorize needs an access that is not open');

    const refused = refusalNow(caller, access);
    if (refused === undefined) return { caller: access.admit(caller) };

    const request = { rawHeaders: ['Authorization', schemeOf(caller)] };
    const settled = replies.settle({ known: { rules: [{ access }], caller }, refused }, request);
    replies.observe({ request, arrivedAtMillis: 0 }, settled, settled.reply.status);
    return { refusal: describe(settled.reply) };
  }

  async function admit<Admitted>(request: GateRequest, response: ServerResponse, access: Access<Admitted>) {
    const verdict = await check(request, access);
    if (response.headersSent) {
      // The server timed out or did not await. A throw could end the process.
      replies.finish({ refused: new UsageError(TOO_LATE) }, request);
      return undefined;
    }

    if (verdict.refusal) {
      send(response, verdict.refusal);
      return undefined;
    }

    for (const [name, value] of verdict.headers) response.setHeader(name, value);
    return verdict;
  }

  return {
    /**
     * Checks a request. Rejects with a `TypeError` for anything but a request and an access.
     *
     * @example const verdict = await gate.check(request, needs(scope('read:orders')));
     */
    check,
    /**
     * Checks a further access for an admitted caller, such as the scopes that a body asks for. Checks neither
     * token nor proof again. Throws a `TypeError` for anything but a verified `Caller`, and for `open` or
     * anything but an access.
     *
     * @example const { refusal } = gate.authorize(caller, needs(scope('write:orders')));
     */
    authorize,
    /**
     * Checks a request and sends the refusal, if any. Resolves to `undefined` if it sent one, or if the
     * response had already begun.
     *
     * @example const admission = await gate.admit(request, response, needs(scope('read:orders')));
     */
    admit,
  };
}

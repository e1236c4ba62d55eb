// Just the checks, for an existing server: Host → path → early replies → credentials → token → sender →
// access. An access that ignores credentials checks only the form of the request. Reads no body, adds nothing
// to the request, and does not bound what the server lets in.
import type { ServerResponse } from 'node:http';
import { andThen, attempt, type Clock, type MaybePromise } from '../../verify/base/clock.ts';
import { UsageError } from '../../verify/base/events.ts';
import { Refused } from '../../verify/base/refusal.ts';
import { claimsOf, copyOf, isGenuine, schemeOf, type Caller } from '../../verify/caller.ts';
import { readFacts } from '../../verify/request/facts.ts';
import type { Decide } from '../decide.ts';
import { turnAway, type Early, type RequestRecord } from '../record.ts';
import { nonceFields, type Replies } from '../replies/refusal-replies.ts';
import { pairsOf, type Reply } from '../replies/reply.ts';
import { isAccess, mayWait, type DecidedAccess } from '../rules/access.ts';
import { refuseForm, requestOf } from './request.ts';
import type {
  Authorization,
  FetchRequest,
  GateMethods,
  GateRequest,
  RefusalReply,
  Verdict,
} from './verdict.ts';

/** Of a check that is about no request. */
const NO_FACTS = { method: '', host: undefined, path: '', rawHeaders: [] };

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

export function createGateMethods({ early, decide, replies, clock }: GateParts): GateMethods {
  function checkRequest(request: GateRequest, access: DecidedAccess<unknown>): MaybePromise<RequestRecord> {
    const refused = refuseForm(request);
    if (refused !== undefined) return turnAway({}, refused);
    if (access.credentials === 'ignored') return {};

    const facts = readFacts(request);
    if (facts instanceof Refused) return turnAway({}, facts);

    return early(facts) ?? decide({ facts, demands: [access], isServed: true, connection: request.socket });
  }

  async function check<Admitted>(
    given: GateRequest | FetchRequest,
    access: DecidedAccess<Admitted>,
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

  function authorize<Admitted>(caller: Caller<unknown>, access: DecidedAccess<Admitted>) {
    if (!isGenuine(caller)) {
      throw new TypeError('authorize needs a verified Caller');
    }
    requireAccess(access);
    if (access.credentials === 'ignored') throw new TypeError('authorize needs an access that is not open');

    const now = copyOf(caller, claimsOf(caller), clock.now());
    const asked = { facts: NO_FACTS, demands: [access], isServed: true, caller: now };
    const authorized = andThen(decide(asked), (record): Authorization<Admitted> => {
      if (record.reason === undefined) return { caller: access.admit(caller) };

      const request = { rawHeaders: ['Authorization', schemeOf(caller)] };
      const replied = replies.complete(record, request);
      replies.observe({ request, arrivedAtMillis: 0 }, replied, replied.reply.status);
      return { refusal: describe(replied.reply) };
    });
    return mayWait(access) ? Promise.resolve(authorized) : authorized;
  }

  async function admit<Admitted>(
    request: GateRequest,
    response: ServerResponse,
    access: DecidedAccess<Admitted>,
  ) {
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

  return { check, authorize: authorize as GateMethods['authorize'], admit };
}

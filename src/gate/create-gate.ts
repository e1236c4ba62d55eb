// The checks for a server that you already have: Host → path → early replies → credentials → token → sender
// → access. An access that ignores credentials checks only the form of the request. Promises: several gates
// can share a process, and none keeps it alive; nothing is written unless `log` is given. Reads no body,
// adds nothing to the request, and does not bound what the server lets in. Loads no routes, listener,
// settings or part.
import type { ServerResponse } from 'node:http';
import { attempt, andThen, systemClock, type Clock, type MaybePromise } from '../verify/base/clock.ts';
import { UsageError } from '../verify/base/events.ts';
import { Part } from '../verify/base/option.ts';
import { Refused } from '../verify/base/refusal.ts';
import { claimsOf, copyOf, isGenuine, schemeOf, type Caller } from '../verify/caller.ts';
import { readFacts, type RawRequest } from '../verify/request/facts.ts';
import { createChecks, type Answers } from './checks.ts';
import type { Judged, Tell } from './events.ts';
import { turnedAwayBy, type RequestRecord } from './decide.ts';
import { refuseForm, requestOf, type ReadRequest } from './foreign/request.ts';
import type {
  Authorization,
  FetchRequest,
  GateMethods,
  GateRequest,
  RefusalReply,
  Verdict,
} from './foreign/verdict.ts';
import { readGateOptions, type GateOptions } from './options.ts';
import { nonceFields, pairsOf } from './replies/reply.ts';
import { isAccess, mayWait, toBeAwaited, type DecidedAccess } from './rules/access.ts';
import { createTell } from './tell.ts';

/** Of a check that is about no request. */
const NO_FACTS = { method: '', path: '', rawHeaders: [] };

const NO_RESPONSE = "admit needs Node's response, such as Fastify's reply.raw; without one, use check";

const TOO_LATE =
  'the response began before admit was done; await admit, or raise the time limits of your server';

function requireAccess(access: unknown) {
  if (!isAccess(access)) {
    throw new TypeError('the gate needs an access, such as needs(), of the same copy of the package');
  }
}

function send(response: ServerResponse, { status, headers, body }: RefusalReply) {
  // `writeHead` would lose the second challenge if a framework has set a field.
  for (const [name] of headers) response.removeHeader(name);
  for (const [name, value] of headers) response.appendHeader(name, value);
  response.statusCode = status;
  response.end(body);
}

const ADMITTED = { admitted: true, status: null };

interface GateParts extends Answers {
  readonly clock: Clock;
  readonly tell?: Tell<Judged> | undefined;
}

export function createGateMethods({ early, decide, replies, observer, tell, clock }: GateParts): GateMethods {
  function checkRequest(
    request: ReadRequest,
    access: DecidedAccess<unknown>,
    given: GateRequest | FetchRequest,
  ): MaybePromise<RequestRecord> {
    // A server's own request may have a member of that name.
    const refused = (request !== given && request.refused) || refuseForm(request);
    if (refused !== undefined) return turnedAwayBy(refused);
    if (access.credentials === 'ignored') return {};

    const facts = readFacts(request);
    if (facts instanceof Refused) return turnedAwayBy(facts);

    // Once read, Node knows it even if the client has gone.
    if (tell) void Object(facts.socket).remoteAddress;
    return early?.(facts) ?? decide({ facts, demands: [access], isServed: true, request: given });
  }

  /** A client that has gone gets nothing. */
  function refuse(record: RequestRecord, request: RawRequest, complete = replies.finish) {
    const replied = complete(record, request);
    const { status, fields, content } = replied.reply;
    const { method, rawHeaders } = request;
    // Without the URL: a gate has no probes.
    const arrival = { request: { method, rawHeaders }, arrivedAtMillis: 0 };
    if (record.isGone) {
      void tell?.(request, { caller: record.caller }, { admitted: false, status: null });
    } else {
      observer.observe(arrival, replied, status);
      void tell?.(request, replied, { admitted: false, status });
    }
    return { refusal: { status, headers: pairsOf(fields), body: String(content) || null } };
  }

  /** Gives one verdict. If `response` has begun by then, that is a bug of the server. */
  async function judge<Admitted>(
    given: GateRequest | FetchRequest,
    access: DecidedAccess<Admitted>,
    response?: ServerResponse,
  ): Promise<Verdict<Admitted>> {
    requireAccess(access);
    const request = requestOf(given);
    const judged = await attempt(() => checkRequest(request, access, given), turnedAwayBy);
    // The server timed out or did not await. A throw could end the process.
    const record = response?.headersSent ? turnedAwayBy(new UsageError(TOO_LATE)) : judged;
    const isAdmitted = record.reason === undefined && record.reply === undefined;
    if (!isAdmitted) return refuse(record, request);

    void tell?.(request, record, ADMITTED);
    const headers = pairsOf(nonceFields(record));
    // Now: a turn later, the response may have begun.
    for (const [name, value] of headers) response?.setHeader(name, value);
    return { caller: access.admit(record.caller), headers };
  }

  function authorize<Admitted>(caller: Caller<unknown>, access: DecidedAccess<Admitted>) {
    if (!isGenuine(caller)) {
      throw new TypeError('authorize needs a verified Caller');
    }
    requireAccess(access);
    if (access.credentials === 'ignored') throw new TypeError('authorize needs an access that is not open');

    const now = copyOf(caller, claimsOf(caller), clock.now());
    const asked = { facts: NO_FACTS, demands: [access], isServed: true, known: { caller: now } };
    const authorized = andThen(decide(asked), (record): Authorization<Admitted> => {
      const request = { rawHeaders: ['Authorization', schemeOf(caller)] };
      if (record.reason !== undefined) return refuse(record, request, replies.complete);

      void tell?.(request, record, ADMITTED);
      return { caller: access.admit(caller) };
    });
    return mayWait(access) ? toBeAwaited(authorized) : authorized;
  }

  async function admit<Admitted>(
    request: GateRequest,
    response: ServerResponse,
    access: DecidedAccess<Admitted>,
  ) {
    if (response?.headersSent === undefined) throw new TypeError(NO_RESPONSE);

    const verdict = await judge(request, access, response);
    if (!verdict.refusal) return verdict;

    if (!response.headersSent) send(response, verdict.refusal);
    return undefined;
  }

  return {
    check: (request, access) => judge(request, access),
    authorize: authorize as GateMethods['authorize'],
    admit,
  };
}

/** Made by `createGate`. */
export interface Gate extends GateMethods {
  /**
   * For the readiness probe of your server: whether the first issuer's keys have been fetched once, and those
   * of any issuer are usable.
   */
  readonly isReady: () => boolean;
  /** Ends what runs in the background, such as connections to a store. */
  readonly close: () => void;
}

/**
 * Creates the checks and starts to fetch keys. Throws a `TypeError` for the first option that is wrong.
 *
 * @example const gate = createGate({ domain: 'idp.test', audience: 'https://api.test' });
 */
export function createGate(options: GateOptions): Gate {
  const values = readGateOptions(options);
  const clock = systemClock;
  const serving = { clock, name: 'gate', routes: [], ownRoutes: [], isService: false };
  const checks = createChecks(values, serving);
  Part.use(values, ...Object.values(values.issuers));
  checks.fetchKeys();

  const { log, isReady, close } = checks;
  const tell = createTell<Judged>(values.onVerdict, values, clock, log);
  return { ...createGateMethods({ ...checks, clock, tell }), isReady, close };
}

// The pipeline: request → credentials → token → sender → guards → handler → reply, and the one catch for refusals. Promises: every
// request gets exactly one answer; nothing is awaited while keys are held and the handler is synchronous; only a bug is a 500.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JsonObject } from '../base/encoding.ts';
import { createRefusalReplies, type ChallengeRules } from '../reply/challenge.ts';
import { createCors, type Cors } from '../reply/cors.ts';
import { prepare, reply, type Reply } from '../reply/reply.ts';
import { Router, targetPath } from '../routes/router.ts';
import { KeySet, KeysPending, type Clock } from '../keys/key-set.ts';
import { describeBug, printable, type Log } from '../base/events.ts';
import { policyA, policyRowsA, rowsA } from '../profiles/a.ts';
import { rowsB } from '../profiles/b.ts';
import { deadEnd, Refused, unavailable } from '../base/refusal.ts';
import { get, open, type PrefixRule, type Row } from '../routes/row.ts';
import { after, createSender, type Caller, type Presentation, type Sender } from '../sender/caller.ts';
import { acceptedScheme, fieldValues, parseCredentials } from '../sender/credentials.ts';
import { checkHost } from '../request/uri.ts';
import { createNonces } from '../sender/dpop-nonce.ts';
import { createProofVerifier } from '../sender/dpop-proof.ts';
import { createReplayStore } from '../sender/replay.ts';
import type { Settings } from '../settings/load.ts';
import { createTokenVerifier, type TokenVerifier } from '../token/verify.ts';

/** The tables, the checks, `now` in milliseconds since the epoch, and whether every answer shall close its connection. */
export type AppParts = Readonly<{
  rows: readonly Row[];
  policy: readonly PrefixRule[];
  verifyToken: TokenVerifier;
  checkSender: Sender;
  rules: ChallengeRules;
  cors: Cors;
  log: Log;
  now: () => number;
  isStopping: () => boolean;
}>;
type Answer<Given> = (request: IncomingMessage, response: ServerResponse, refused?: Refused) => Given;
/** `answer` never throws, and answers with the refusal if there is one already; `prepare` does the same up to the writing, which it
 * gives unless the answer comes later; `refuse` is for bytes that never became a request. */
export type App = Readonly<{
  answer: Answer<void>;
  prepare: Answer<(() => void) | undefined>;
  refuse: (refused: Refused) => Reply;
}>;
/** A request on its way: how often it has waited for keys, and where to note the provider's name of the key that its token uses. */
type Asking = Presentation & Readonly<{ waits: number; noteKey: (kid: string | undefined) => void }>;
/** Builds the app. Throws an `Error` when rows overlap. */
export function createApp(parts: AppParts): App {
  const { cors, isStopping } = parts;
  const [router, replyTo] = [new Router(parts.rows, parts.policy), createRefusalReplies(parts.rules)];
  const respond = (
    request: IncomingMessage,
    response: ServerResponse,
    waits: number,
    refused?: Refused,
  ): (() => void) | undefined => {
    let [nonce, kid]: [readonly string[], string | undefined] = [[], undefined];
    const offerNonce = (fresh: string) => {
      nonce = ['DPoP-Nonce', fresh];
    };
    const noteKey = (used: string | undefined) => {
      kid = used;
    };
    const finish = (answer: Reply) =>
      prepare(request, response, answer, [...cors.headers(request), ...nonce], isStopping());
    const settle = (outcome: object) =>
      outcome instanceof Refused ? fail(outcome) : finish(reply(200, outcome));
    const fail = (failure: unknown) =>
      finish(replyToFailure(parts, replyTo, request.rawHeaders, failure, kid));
    try {
      if (refused !== undefined) throw refused;
      checkHost(request.rawHeaders);
      const path = targetPath(request.url ?? '');
      const preflight = cors.preflight(request);
      if (preflight !== undefined) return prepare(request, response, preflight, [], isStopping());
      const presentation = {
        method: request.method ?? '',
        path,
        rawHeaders: request.rawHeaders,
        nowMillis: parts.now(),
        waits,
        offerNonce,
        noteKey,
      };
      const outcome = answerBody(parts, router, presentation);
      if (!(outcome instanceof Promise)) return settle(outcome);
      outcome
        .then(settle)
        .catch(fail)
        .then((write) => write());
    } catch (failure) {
      if (!(failure instanceof KeysPending)) return fail(failure);
      void failure.settled.then(() => respond(request, response, waits + 1)?.());
    }
    return undefined;
  };
  const refuse = (refused: Refused) => {
    const answer = replyToFailure(parts, replyTo, [], refused);
    return { ...answer, fields: [...answer.fields, ...cors.headers(undefined)] };
  };
  const begin: App['prepare'] = (request, response, refused) => respond(request, response, 0, refused);
  return { answer: (...asked) => begin(...asked)?.(), prepare: begin, refuse };
}
/** Route → credentials → token → sender → guards → handler, which gives the body, or the `Refused`. HEAD goes the way of GET (RFC 9110 §9.3.2). */
function answerBody(
  parts: AppParts,
  router: Router<Row, PrefixRule>,
  presentation: Asking,
): object | Promise<object> {
  const { method, path, nowMillis } = presentation;
  const place = router.find(path);
  if (place === undefined) return deadEnd('not_found');
  const { rule, row, parameters } = place;
  const isRow = row !== undefined && (method === 'GET' || method === 'HEAD');
  const readsCredentials = rule !== undefined || (isRow && row.access.credentials !== 'ignored');
  return after(readsCredentials ? identify(parts, presentation) : undefined, (caller) => {
    const admitted = rule?.access.admit(caller);
    if (admitted instanceof Refused) return admitted;
    if (!isRow) return deadEnd(row === undefined ? 'not_found' : 'method_not_allowed');
    return row.answer(caller, parameters, nowMillis);
  });
}
/** Nobody is identified when there are no credentials. */
function identify(
  { rules, verifyToken, checkSender }: AppParts,
  presentation: Asking,
): Caller | undefined | Promise<Caller> {
  const credentials = parseCredentials(presentation.rawHeaders, rules.dpopMode);
  const { nowMillis, waits, noteKey } = presentation;
  return (
    credentials &&
    checkSender(verifyToken(credentials.token, nowMillis, waits, noteKey), credentials, presentation)
  );
}
function replyToFailure(
  { rules, log }: AppParts,
  replyTo: ReturnType<typeof createRefusalReplies>,
  rawHeaders: readonly string[],
  failure: unknown,
  kid?: string,
): Reply {
  if (!(failure instanceof Refused)) {
    log('request failed', describeBug(failure));
    return reply(500, { error: 'server_error', message: 'Internal Server Error' });
  }
  const [authorization = ''] = fieldValues(rawHeaders, 'authorization');
  const answer = replyTo(failure.refusal, acceptedScheme(authorization, rules.dpopMode));
  log('request refused', {
    status: answer.status,
    reason: failure.refusal.reason,
    ...(kid !== undefined && { kid: printable(kid) }),
  });
  return answer;
}
/** What a process gives the service. `fetchKeys` rejects with `FetchFailure`. */
export type Surroundings = Readonly<{
  clock: Clock;
  log: Log;
  fetchKeys: () => Promise<JsonObject>;
  isStopping: () => boolean;
}>;
/** Call `keys.refresh` once at the start; after that requests keep the keys fresh. */
export type Service = Readonly<{ app: App; keys: KeySet }>;
/** The rows of the profile that the settings choose. */
export const tableOf = ({ profile, scopePolicy, orgId }: Settings): readonly Row[] =>
  profile === 'B' ? rowsB(orgId) : scopePolicy ? [...rowsA, ...policyRowsA] : rowsA;
/** Settings → the service: keys, verifier, tables and pipeline put together. Nothing is fetched or listened on yet. */
export function assemble(settings: Settings, { clock, log, fetchKeys, isStopping }: Surroundings): Service {
  const keys = new KeySet(fetchKeys, clock, log);
  const { dpopNonceSecret: secret, dpopIatOffsetSeconds, dpopIatLeewaySeconds } = settings;
  const verifyProof = createProofVerifier(settings, secret === undefined ? undefined : createNonces(secret));
  const used = createReplayStore(dpopIatOffsetSeconds + dpopIatLeewaySeconds, undefined, () =>
    log('memory of used proofs full', {}),
  );
  const readiness = () => {
    if (isStopping() || !keys.isReady())
      throw unavailable(isStopping() ? 'shutting-down' : 'keys-unavailable', 1);
    return { status: 'ready' };
  };
  const app = createApp({
    rows: [
      get('/healthz', open, () => ({ status: 'ok' })),
      get('/readyz', open, readiness),
      ...tableOf(settings),
    ],
    policy: settings.scopePolicy ? policyA : [],
    verifyToken: createTokenVerifier(settings, keys, settings.tokenCacheEntries),
    checkSender: createSender(settings, verifyProof, used),
    rules: settings,
    cors: createCors(settings),
    log,
    now: clock.now,
    isStopping,
  });
  return { app, keys };
}

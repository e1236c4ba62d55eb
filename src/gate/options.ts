// The options that gates and services share, beside those of the checks of tokens.
import {
  boolean,
  functionOr,
  readOptions,
  someFunction,
  textMatching,
  throwProblem,
  Part,
  type Given,
  type Rule,
  type Rules,
  type RulesOf,
} from '../verify/base/option.ts';
import { ignoreErrors } from '../verify/base/clock.ts';
import { EVENTS, type Count, type Log, type LogLevel, type Surroundings } from '../verify/base/events.ts';
import type { ConfirmCertificate } from '../verify/caller.ts';
import type { DpopMode } from '../verify/request/facts.ts';
import { OwnReplayStore, type CreateReplayStore, type ReplayStore } from '../verify/dpop/replay.ts';
import {
  CHECK_DEFAULTS,
  readIssuers,
  REQUIRED,
  requireFit,
  VERIFY_RULES,
  type IssuersByName,
  type IssuersValues,
  type VerifyOptions,
} from '../verify/options.ts';
import type { Issuer, TokenVerifier } from '../verify/token/verify.ts';
import type { OnError, OnVerdict } from './events.ts';
import type { Meter } from './observe.ts';
import type { Early, MatchedRoute } from './decide.ts';
import type { NameScopes } from './replies/refusal-replies.ts';
import type { CrossOrigin } from './replies/reply.ts';

/** What writes the log. */
interface LogSink {
  readonly log: Log;
  readonly level: LogLevel;
  /** Whether each request has a line. */
  readonly isAccessLogged: boolean;
}

/** Made by `jsonLog`. Any number of gates and services can share it. */
export interface LogPart extends Part<'log', LogSink> {}

/** A logger of the user's own. */
type LogFunction = (level: LogLevel, message: string, fields: Readonly<object>) => unknown;

/** Where client certificates come from. */
interface ClientCertificates {
  readonly createConfirm: (dpopMode: DpopMode) => ConfirmCertificate;
  /** Whether a Bearer token must be bound to one. */
  readonly isRequired: boolean;
  readonly source: string;
  /** The header field that holds them, in lower case; none for TLS. */
  readonly field: string | undefined;
  /** Who may send the field. */
  readonly proxies: string | readonly string[] | undefined;
}

/** Made by `clientCertificates`, for one gate or service. */
export interface ClientCertificatesPart extends Part<'clientCertificates', ClientCertificates> {}

/** What resource metadata say (RFC 9728 §2). */
export interface Resource {
  readonly issuers: IssuersByName;
  readonly dpopMode: DpopMode;
  readonly dpopAlgorithms: readonly string[];
  readonly clientCertificates?: ClientCertificatesPart | undefined;
  readonly log: Log;
  /** The early reply to requests for anything else. */
  readonly preflight?: Early | undefined;
}

interface Metadata {
  /** The identifier of the resource. */
  readonly url: string;
  /** Where they are. */
  readonly paths: readonly string[];
  /** RFC 9728 §5.1 */
  readonly metadataUrl: string;
  readonly nameScopes: NameScopes;
  readonly createEarly: (resource: Resource) => Early;
}

/** Made by `resourceMetadata`, for one gate or service. */
export interface MetadataPart extends Part<'metadata', Metadata> {}

export interface CorsContext {
  readonly dpopMode: DpopMode;
  /** Of the routes; preflights allow them unless an option says which. */
  readonly methods: readonly string[];
}

export interface Cors extends CrossOrigin {
  readonly preflight: Early;
}

/** Made by `cors`, for one gate or service. */
export interface CorsPart extends Part<'cors', (context: CorsContext) => Cors> {}

/** What asks whether tokens were revoked. */
export interface Revocations {
  /** `redis`, or how it is clustered. */
  readonly kind: string;
  readonly isUp: () => boolean;
  /** Resolves once the store is known to respond, or not to. */
  readonly firstOutcome: Promise<void>;
  /** Throws a `TypeError` if they do not know one of the issuers. */
  readonly join: (issuers: readonly Issuer[], server: Surroundings) => Joined;
}

/** With revocations, on behalf of one gate or service. */
export interface Joined {
  /** The result refuses revoked tokens. */
  readonly protect: (verifyToken: TokenVerifier) => TokenVerifier;
  /** Ends its log of the store. */
  readonly leave: () => void;
}

/** Made by `createRevocations`. Any number of gates and services can share it. */
export interface RevocationsPart extends Part<'revocations', Revocations> {}

/** What metrics read when they are asked for. */
export interface Watched {
  readonly name: string;
  readonly issuers: readonly Issuer[];
  readonly replayStore: ReplayStore;
  readonly revocations?: Revocations | undefined;
  readonly routes: readonly MatchedRoute[];
  readonly ownRoutes: readonly MatchedRoute[];
}

export interface Metrics {
  readonly count: Count;
  readonly meter: Meter;
  /** Returns a function that ends it. */
  readonly watch: (watched: Watched) => () => void;
  /** A listener of their own. */
  readonly endpoint: Endpoint | undefined;
}

export interface Endpoint {
  readonly port: number;
  /** Resolves with the port. Rejects with Node's error, plus `host` and `port`. */
  readonly listen: (usualHost: string | undefined) => Promise<number>;
  readonly close: () => void;
}

/** Made by `createMetrics`. Without a port, any number of gates and services can share it. */
export interface MetricsPart extends Part<'metrics', Metrics> {}

/** Beside those of the checks. */
interface AnswerValues {
  /** Whether 401 and 403 responses have detailed bodies (docs/refusals.md). Default: `false`. */
  readonly errorDetail: boolean;
  /** The URL of a page with an anchor for each reason: `error_uri` in challenges (RFC 6750 §3). */
  readonly errorDocsUrl: string | undefined;
  readonly log: LogSink | undefined;
  /** Where client certificates come from, made by `clientCertificates`. Default: none are checked. */
  readonly clientCertificates: ClientCertificatesPart | undefined;
  /** The metadata document (RFC 9728), made by `resourceMetadata`. */
  readonly metadata: MetadataPart | undefined;
  /** Refuses revoked tokens, made by `createRevocations`. */
  readonly revocations: RevocationsPart | undefined;
  /** Which other origins may read responses, made by `cors`. */
  readonly cors: CorsPart | undefined;
  /** Counts requests, tokens and refusals, made by `createMetrics`. */
  readonly metrics: MetricsPart | undefined;
  /** Called with each error that becomes a 500, cuts off a response or makes a decision fail. */
  readonly onError: OnError | undefined;
  /** Called shortly after each verdict. A failure is logged. */
  readonly onVerdict: OnVerdict | undefined;
}

/** The options of `createGate`. */
export interface GateOptions extends VerifyOptions, Given<Omit<AnswerValues, 'log'>> {
  /** Made by `jsonLog`, or a function that gets every line except `request`. Default: nothing is logged. */
  readonly log?: LogPart | LogFunction | undefined;
}

/** The options of a gate, with all defaults. */
export interface GateValues extends IssuersValues, AnswerValues {}

/** It stands between quotes in a challenge, before a fragment of ours. */
const errorDocsUrl: Rule = textMatching(
  /^https:\/\/[!-~]+$/i,
  'must be a URL that begins with https://, without "?", "#", a quote or a backslash',
  (url) => !/[?#"\\]/.test(url) && URL.canParse(url),
);

export const GATE_RULES: RulesOf<GateOptions> = {
  ...VERIFY_RULES,
  errorDetail: boolean,
  errorDocsUrl,
  log: functionOr(Part.rule('log', 'jsonLog()')),
  clientCertificates: Part.rule('clientCertificates', 'clientCertificates({ source })'),
  metadata: Part.rule('metadata', 'resourceMetadata({ url })'),
  revocations: Part.rule('revocations', 'createRevocations({ store })'),
  cors: Part.rule('cors', 'cors({ origins })'),
  metrics: Part.rule('metrics', 'createMetrics()'),
  onError: someFunction,
  onVerdict: someFunction,
};

export const GATE_DEFAULTS: Partial<GateValues> = { ...CHECK_DEFAULTS, errorDetail: false };

const ofService: Rule = () => 'is an option of createService alone; remove it here';

/** What a gate has no use for. */
export const OF_SERVICE = {
  port: ofService,
  host: ofService,
  bodyLimitBytes: ofService,
  handlerTimeoutSeconds: ofService,
  requestTimeoutSeconds: ofService,
  shutdownDelaySeconds: ofService,
  onResponse: ofService,
};

const NO_PORT = 'have a port, but a gate does not listen; leave it out, and serve what text() returns';

/** Throws a `TypeError` for the first that is wrong. */
export function readGateOptions(given: GateOptions): GateValues {
  const values = readFitting<GateValues>(given, { ...GATE_RULES, ...OF_SERVICE }, GATE_DEFAULTS);
  if (Part.contentOf(values.metrics)?.endpoint !== undefined) throwProblem('metrics', NO_PORT);
  return values;
}

export const NO_PROOFS = 'has no effect while the DPoP mode is DISABLED; remove it, or set another mode';

export const NO_BEARER =
  'has no effect while the DPoP mode is REQUIRED, which accepts no Bearer token; remove it';

export const WRONG_RESOURCE =
  'must be https:// (http:// on loopback), with the origin of the public URL, no "=", no "/" after a path';

/** RFC 9728 §3.3: clients compare it with where they asked. */
export const isSameOrigin = (url: string, publicUrl: string | undefined): boolean =>
  publicUrl === undefined || new URL(publicUrl).origin === new URL(url).origin;

/** Throws a `TypeError` for the first that is wrong, or does not fit the others. */
export function readFitting<Values extends GateValues>(
  given: GateOptions,
  rules: Rules,
  defaults: object,
): Values {
  const values = readOptions<Values & GateOptions>(given, rules, defaults, REQUIRED);
  requireUse(values);

  const publicUrl = values.publicUrl?.replace(/\/$/, '');
  const url = Part.contentOf(values.metadata)?.url;
  if (url !== undefined && !isSameOrigin(url, publicUrl)) throwProblem('metadata: url', WRONG_RESOURCE);

  const issuers = readIssuers(values, values.issuers);
  requireFit(issuers, values);
  return { ...values, publicUrl, issuers, log: sinkOf(values), replayStore: storeOf(values) };
}

/** Of options that the DPoP mode may leave without use. */
function requireUse({ replayStore, clientCertificates, dpopMode }: GateOptions) {
  if (replayStore !== undefined && dpopMode === 'DISABLED') throwProblem('replayStore', NO_PROOFS);

  const needsCertificate = Part.contentOf(clientCertificates)?.isRequired;
  if (needsCertificate && dpopMode === 'REQUIRED') throwProblem('clientCertificates: required', NO_BEARER);
}

/** What a function of the user throws or rejects with is ignored. */
function sinkOf({ log }: GateOptions): LogSink | undefined {
  if (typeof log !== 'function') return Part.contentOf(log);

  const write: Log = (event, fields) => {
    void ignoreErrors(() => log(EVENTS[event], event, fields));
  };

  return { log: write, level: 'debug', isAccessLogged: false };
}

function storeOf({ replayStore }: GateOptions): CreateReplayStore | undefined {
  if (typeof replayStore !== 'function') return Part.contentOf(replayStore);

  return (clock, log) => new OwnReplayStore(replayStore, clock, log);
}

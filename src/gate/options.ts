// The options that gates and services share, beside those of the checks of tokens.
import {
  boolean,
  functionOr,
  option,
  optional,
  readOptions,
  someFunction,
  throwProblem,
  type TableOf,
  type OptionTable,
  type ValuesOf,
} from '../verify/base/option.ts';
import type { Count, Log, LogLevel } from '../verify/base/events.ts';
import { Part } from '../verify/base/part.ts';
import type { DpopMode } from '../verify/credentials.ts';
import type { ReplayStore } from '../verify/dpop/replay.ts';
import { readIssuers, VERIFY_OPTIONS, type IssuersByName, type VerifyOptions } from '../verify/options.ts';
import type { Issuer } from '../verify/token/verify.ts';
import type { Meter } from './observe.ts';
import type { Early, MatchedRoute } from './record.ts';
import type { CrossOrigin, NameScopes, OnError } from './replies/refusal-replies.ts';

/** What writes the log. */
export interface LogSink {
  readonly log: Log;
  readonly level: LogLevel;
  /** Whether each request has a line. */
  readonly isAccessLogged: boolean;
}

/** Made by `jsonLog`. */
export type LogPart = Part<'log', LogSink>;

/** A logger of the user's own. */
export type LogFunction = (level: LogLevel, message: string, fields: Readonly<object>) => unknown;

/** What resource metadata say (RFC 9728 §2). */
export interface Resource {
  readonly issuers: IssuersByName;
  readonly dpopMode: DpopMode;
  readonly dpopAlgorithms: readonly string[];
  readonly log: Log;
}

export interface Metadata {
  /** The identifier of the resource. */
  readonly url: string;
  /** Where they are. */
  readonly paths: readonly string[];
  /** RFC 9728 §5.1 */
  readonly metadataUrl: string;
  readonly nameScopes: NameScopes;
  readonly createEarly: (resource: Resource) => Early;
}

/** Made by `resourceMetadata`. */
export type MetadataPart = Part<'metadata', Metadata>;

export interface CorsContext {
  readonly dpopMode: DpopMode;
  /** Of the routes; preflights allow them unless an option says which. */
  readonly methods: readonly string[];
}

export interface Cors extends CrossOrigin {
  readonly preflight: Early;
}

/** Made by `cors`. */
export type CorsPart = Part<'cors', (context: CorsContext) => Cors>;

/** What metrics read when they are asked for. */
export interface Watched {
  readonly name: string;
  readonly issuers: readonly Issuer[];
  readonly replayStore: ReplayStore;
  readonly routes: readonly MatchedRoute[];
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

/** Made by `createMetrics`. */
export type MetricsPart = Part<'metrics', Metrics>;

/** The options of `createGate`. */
export interface GateOptions extends VerifyOptions {
  /** Whether the bodies of refusals say more. Default: `false`. */
  readonly errorDetail?: boolean | undefined;
  /** Made by `jsonLog`, or a function, which gets each line. Default: nothing is logged. */
  readonly log?: LogPart | LogFunction | undefined;
  /** Resource metadata, made by `resourceMetadata`. */
  readonly metadata?: MetadataPart | undefined;
  /** Which other origins may read responses, made by `cors`. */
  readonly cors?: CorsPart | undefined;
  /** Made by `createMetrics`. */
  readonly metrics?: MetricsPart | undefined;
  /** Called with each error that becomes a 500. What it throws is ignored. */
  readonly onError?: OnError | undefined;
}

export const ANSWER_OPTIONS = {
  errorDetail: option(boolean, false),
  log: optional(functionOr<LogFunction, LogPart>(Part.rule('log', 'jsonLog()'))),
  metadata: optional<MetadataPart>(Part.rule('metadata', 'resourceMetadata({ url })')),
  cors: optional<CorsPart>(Part.rule('cors', 'cors({ origins })')),
  metrics: optional<MetricsPart>(Part.rule('metrics', 'createMetrics()')),
  onError: optional(someFunction<OnError>()),
} satisfies TableOf<Omit<GateOptions, keyof VerifyOptions>>;

export const GATE_OPTIONS = { ...VERIFY_OPTIONS, ...ANSWER_OPTIONS };

/** Of a gate, with all defaults. */
export interface GateValues extends Omit<ValuesOf<typeof GATE_OPTIONS>, 'issuers'> {
  readonly issuers: IssuersByName;
}

/** What a gate has no use for. */
export const SERVICE_NAMES = [
  'port',
  'host',
  'bodyLimitBytes',
  'handlerTimeoutSeconds',
  'shutdownDelaySeconds',
];

const OF_SERVICE = 'is an option of createService alone; remove it here';

const ELSEWHERE = Object.fromEntries(SERVICE_NAMES.map((name) => [name, OF_SERVICE]));

const NO_PORT = 'have a port, but a gate does not listen; leave it out, and serve what text() returns';

/** Throws a `TypeError` for the first that is wrong. */
export function readGateOptions(given: GateOptions): GateValues {
  const values = requireFit(readWithIssuers(given, GATE_OPTIONS, ELSEWHERE));
  const { metrics } = values;
  if (metrics && Part.contentOf(metrics).endpoint !== undefined) throwProblem('metrics', NO_PORT);
  return values;
}

export function readWithIssuers<Values extends ValuesOf<typeof VERIFY_OPTIONS>>(
  given: object,
  table: OptionTable<Values>,
  elsewhere?: Readonly<Record<string, string>>,
) {
  const values = readOptions(given, table, '', elsewhere);
  return { ...values, issuers: readIssuers(values) };
}

export const NO_PROOFS = 'has no use while the DPoP mode is DISABLED; remove it or set the mode';

export const WRONG_RESOURCE =
  'must be https:// (http:// on loopback), with the origin of the public URL, no "=", no "/" after a path';

/** RFC 9728 §3.3: clients compare it with where they asked. */
export const isSameOrigin = (url: string, publicUrl: string | undefined): boolean =>
  publicUrl === undefined || new URL(publicUrl).origin === new URL(url).origin;

/** Throws a `TypeError` for options that do not fit each other. */
export function requireFit<Values extends GateValues>(values: Values): Values {
  const { replayStore, dpopMode, metadata, publicUrl } = values;
  if (replayStore !== undefined && dpopMode === 'DISABLED') throwProblem('replayStore', NO_PROOFS);

  const url = metadata && Part.contentOf(metadata).url;
  const isFit = url === undefined || isSameOrigin(url, publicUrl);
  return isFit ? values : throwProblem('metadata: url', WRONG_RESOURCE);
}

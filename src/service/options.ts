// The options of a service, beside those that a gate has too.
import {
  integer,
  option,
  optional,
  textWithoutBlanks,
  throwProblem,
  type TableOf,
  type ValuesOf,
} from '../verify/base/option.ts';
import { Part } from '../verify/base/part.ts';
import {
  GATE_OPTIONS,
  readWithIssuers,
  requireFit,
  type GateOptions,
  type GateValues,
} from '../gate/options.ts';

/** The options of `createService`. */
export interface ServiceOptions extends GateOptions {
  /** 0 picks a free one. Default: 3001. */
  readonly port?: number | undefined;
  /** The address to listen on. Default: all. */
  readonly host?: string | undefined;
  /** The largest body. Default: 102,400. */
  readonly bodyLimitBytes?: number | undefined;
  /** How long a handler may take; 0 for any time. Default: 30. */
  readonly handlerTimeoutSeconds?: number | undefined;
  /** How long `stop` waits, no longer ready, before it closes the port. Default: 0. */
  readonly shutdownDelaySeconds?: number | undefined;
}

export const LISTENER_OPTIONS = {
  port: option(integer(0, 65_535), 3001),
  host: optional(textWithoutBlanks),
  bodyLimitBytes: option(integer(1, 16_777_216), 102_400),
  handlerTimeoutSeconds: option(integer(0, 3_600), 30),
  shutdownDelaySeconds: option(integer(0, 60), 0),
} satisfies TableOf<Omit<ServiceOptions, keyof GateOptions>>;

export const SERVICE_OPTIONS = { ...LISTENER_OPTIONS, ...GATE_OPTIONS };

/** Of a service, with all defaults. */
export interface ServiceValues extends GateValues, ValuesOf<typeof LISTENER_OPTIONS> {}

export const SAME_PORT = 'is the port of the service itself; choose another';

/** Throws a `TypeError` for the first that is wrong. */
export function readServiceOptions(given: ServiceOptions): ServiceValues {
  const values = requireFit(readWithIssuers(given, SERVICE_OPTIONS));
  const { metrics, port } = values;
  const endpoint = metrics && Part.contentOf(metrics).endpoint;
  if (port !== 0 && endpoint?.port === port) throwProblem('metrics: port', SAME_PORT);
  return values;
}

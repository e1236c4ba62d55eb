// The options of a service, beside those that a gate has too.
import {
  integer,
  someFunction,
  textWithoutBlanks,
  throwProblem,
  Part,
  type Given,
  type RulesOf,
} from '../verify/base/option.ts';
import type { OnResponse } from '../gate/events.ts';
import {
  GATE_DEFAULTS,
  GATE_RULES,
  readFitting,
  type GateOptions,
  type GateValues,
} from '../gate/options.ts';

interface ListenerValues {
  /** The port to listen on; 0 picks a free one. Default: 3001. */
  readonly port: number;
  /** The address to listen on. Default: all. */
  readonly host: string | undefined;
  /** The maximum size of a request body, 1 to 16,777,216. Default: 102,400. */
  readonly bodyLimitBytes: number;
  /** How long a handler may take, up to 3,600; 0 for no limit. Default: 30. */
  readonly handlerTimeoutSeconds: number;
  /** How long a whole request, with its body, may take to arrive, 1 to 3,600. Default: 15. */
  readonly requestTimeoutSeconds: number;
  /** How long `stop` keeps serving, while `/readyz` returns 503, up to 60. Default: 0. */
  readonly shutdownDelaySeconds: number;
  /** Called shortly after each response, and for a client that has gone. A failure is logged. */
  readonly onResponse: OnResponse | undefined;
}

/** The options of `createService`. */
export interface ServiceOptions extends Omit<GateOptions, 'onVerdict'>, Given<ListenerValues> {}

/** The options of a service, with all defaults. */
export interface ServiceValues extends GateValues, ListenerValues {}

export const SERVICE_RULES: RulesOf<ServiceOptions & GateOptions> = {
  ...GATE_RULES,
  onVerdict: () => 'is an option of createGate alone; use onResponse',
  port: integer(0, 65_535),
  host: textWithoutBlanks,
  bodyLimitBytes: integer(1, 16_777_216),
  handlerTimeoutSeconds: integer(0, 3_600),
  requestTimeoutSeconds: integer(1, 3_600),
  shutdownDelaySeconds: integer(0, 60),
  onResponse: someFunction,
};

export const SERVICE_DEFAULTS: Partial<ServiceValues> = {
  ...GATE_DEFAULTS,
  port: 3001,
  bodyLimitBytes: 102_400,
  handlerTimeoutSeconds: 30,
  requestTimeoutSeconds: 15,
  shutdownDelaySeconds: 0,
};

export const NO_TLS =
  'must not be tls, since a service offers no TLS; choose the form that your proxy writes, such as rfc9440';

export const SAME_PORT = 'is the port of the service itself; choose another';

/** Throws a `TypeError` for the first that is wrong. */
export function readServiceOptions(given: ServiceOptions): ServiceValues {
  const values = readFitting<ServiceValues>(given, SERVICE_RULES, SERVICE_DEFAULTS);
  const { clientCertificates, metrics, port } = values;
  if (Part.contentOf(clientCertificates)?.source === 'tls') {
    throwProblem('clientCertificates: source', NO_TLS);
  }

  const isTaken = port !== 0 && Part.contentOf(metrics)?.endpoint?.port === port;
  return isTaken ? throwProblem('metrics: port', SAME_PORT) : values;
}

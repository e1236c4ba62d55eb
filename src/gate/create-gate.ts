// The checks for a server that you already have. Promises: several gates can share a process, and none keeps
// it alive; nothing is written unless `log` is given. Loads no routes, listener, settings or part.
import { systemClock as clock } from '../verify/base/clock.ts';
import { Part } from '../verify/base/option.ts';
import { createChecks } from './checks.ts';
import type { Judged } from './events.ts';
import { createGateMethods } from './foreign/gate.ts';
import type { GateMethods } from './foreign/verdict.ts';
import { readGateOptions, type GateOptions } from './options.ts';
import { createTell } from './tell.ts';

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
  const serving = { clock, name: 'gate', routes: [], ownRoutes: [], isService: false };
  const checks = createChecks(values, serving);
  Part.use(values, ...Object.values(values.issuers));
  checks.fetchKeys();

  const { log, isReady, close } = checks;
  const tell = createTell<Judged>(values.onVerdict, values, clock, log);
  return { ...createGateMethods({ ...checks, clock, tell }), isReady, close };
}

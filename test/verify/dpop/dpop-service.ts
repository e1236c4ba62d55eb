/* The service with DPoP and without a network, and requests with bound tokens and proofs. */
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { createAnswers } from '../../../src/gate/checks.ts';
import { createRouteReaders } from '../../../src/service/create-service.ts';
import { Pipeline } from '../../../src/service/request/pipeline.ts';
import { Responder } from '../../../src/service/request/responder.ts';
import { Part } from '../../../src/verify/base/option.ts';
import { KeySet } from '../../../src/verify/keys/key-set.ts';
import { Listener } from '../../../src/service/connection/listener.ts';
import { routesA } from '../../../src/profiles/a.ts';
import type { SenderCheck } from '../../../src/verify/caller.ts';
import { createTokenVerifier } from '../../../src/verify/token/verify.ts';
import type { Provider } from '../../idp/provider.ts';
import type { Response } from '../../support/client.ts';
import { TestClock } from '../../support/clock.ts';
import { makeProof, type Members, type ProofKey } from '../../support/proof.ts';
import { serve } from '../../support/serve.ts';
import { startService, type TestService } from '../../support/service.ts';
import {
  createTestLog,
  settingsFrom,
  valuesOf as optionValuesOf,
  type Environment,
} from '../../support/settings.ts';
import { AUDIENCE, DOMAIN, issue, keySetOf, NOW, RULES } from '../token/issuer.ts';
import { key } from '../sender-fixture.ts';

export const REFUSED = { error: 'invalid_dpop_proof', message: 'Authentication required' };
export const ALGS = 'algs="ES256 ES384 ES512 EdDSA PS256 RS256"';
/** A token bound to `key`, with the scopes of the policy, and one that is not bound. */
export const BOUND = issue({ cnf: { jkt: key.thumbprint }, scope: 'admin' });
export const UNBOUND = issue({ scope: 'admin' });

const provider = { domain: DOMAIN, audience: AUDIENCE } as Provider;

/** Profile A under a clock that stands still. It stops after the tests of the file. */
export async function startDpop(environment: Environment = {}): Promise<TestService> {
  const clock = new TestClock(NOW * 1000);
  const service = await startService({
    provider,
    fetchKeys: async () => keySetOf(),
    environment: { PROFILE: 'A', ...environment },
    clock,
  });
  after(() => service.stop());
  return service;
}

export interface Call {
  readonly path?: string;
  readonly method?: string;
  readonly token?: string;
  readonly signer?: ProofKey;
  /** How the proof differs from the request. */
  readonly claims?: Members;
  readonly header?: Members;
  /** Replaces the proof; `undefined` for none. */
  readonly proof?: string | string[] | undefined;
  readonly scheme?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
}

/** The URI by which the tests reach the service. */
export const uriOf = ({ port }: TestService, path: string) => `http://127.0.0.1:${port}${path}`;

/** A valid proof for a call, with the changes of the call. */
export function proofFor(
  service: TestService,
  { path = '/api/private', method = 'GET', token = BOUND, signer = key, claims, header }: Call = {},
): string {
  const subject = {
    token,
    uri: uriOf(service, path),
    method,
    nowSeconds: Math.floor(service.clock.now() / 1000),
  };
  return makeProof(signer, subject, claims, header);
}

/** Sends a request with a token, the scheme DPoP and a proof made for it. */
export function call(service: TestService, what: Call = {}): Promise<Response> {
  const { path = '/api/private', method = 'GET', token = BOUND, scheme = 'DPoP', headers = {} } = what;
  const proof = 'proof' in what ? what.proof : proofFor(service, what);
  const fields = {
    Authorization: `${scheme} ${token}`,
    ...(proof === undefined ? {} : { DPoP: proof }),
    ...headers,
  };
  return service.ask(path, { method, headers: fields });
}

/** The status, and the logged reason if the response is a refusal. */
export const outcome = (service: TestService, { status }: Response): string => {
  const line = service.logs.at(-1);
  if (status === 200) return '200';
  assert.deepEqual([line?.message, line?.status, line?.level], ['request refused', status, 'debug']);
  return `${status} ${line?.reason}`;
};

/** Every value of a field of the response. */
export const valuesOf = ({ rawHeaders }: Response, name: string): string[] =>
  rawHeaders.filter(
    (_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name.toLowerCase(),
  );

/** The routes of profile A with another sender check. */
export async function startWith(
  checkSender: SenderCheck,
  environment: Environment = {},
): Promise<TestService> {
  const clock = new TestClock(NOW * 1000);
  const settings = settingsFrom({
    IDP_DOMAIN: DOMAIN,
    IDP_AUDIENCE: AUDIENCE,
    PROFILE: 'A',
    LOG_LEVEL: 'debug',
    ...environment,
  });
  const { log, logs } = createTestLog(clock, settings.logLevel, settings.accessLog);
  const keys = new KeySet('idp', async () => keySetOf(), { clock, log: () => {}, count: undefined });
  await keys.refresh();
  const verifyToken = createTokenVerifier([{ ...RULES, keys }], clock, 10);
  const limits = { bodyLimitBytes: 1, handlerTimeoutSeconds: 0, trustProxy: false };
  const serving = { clock, name: 'A', routes: [], ownRoutes: [], isService: true };
  const values = await optionValuesOf(settings, { log });
  const way = createAnswers(values, serving, {
    dpopMode: settings.dpopMode,
    surroundings: { clock, log: Part.contentOf(log).log, count: undefined },
    verifyToken,
    checkSender,
    expect: () => ({}),
  });
  const readers = createRouteReaders({ routes: routesA }, [], way.early);
  const pipeline = new Pipeline(readers, { ...way, ...limits, clock });
  const responder = new Responder(pipeline, way.replies, way.observer, clock);
  const { server } = new Listener(responder, clock, 15_000);
  const served = await serve(server);
  after(served.stop);
  return { ...served, settings, clock, keys, keySets: [keys], logs, beginStopping: () => {} };
}

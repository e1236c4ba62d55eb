/* A policy behind a listener in this process, and the questions that proxies ask of it. */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { createQuestionReaders } from '../../src/options/forward-auth.ts';
import { composeService } from '../../src/service/create-service.ts';
import { readServiceOptions, type ServiceOptions } from '../../src/service/options.ts';
import { systemClock as clock } from '../../src/verify/base/clock.ts';
import type { FetchKeys } from '../../src/verify/options.ts';
import { Listener } from '../../src/service/connection/listener.ts';
import type { Routes } from '../../src/service/routes/route.ts';
import { createMetrics } from '../../src/options/metrics/metrics-listener.ts';
import { createProofKey, createTestIssuer } from '../../src/testing.ts';
import { openWire } from '../support/client.ts';
import { serve } from '../support/serve.ts';
import { createTestLog, kindWith } from '../support/settings.ts';
import { isWhole, parseResponse, type WireResponse } from '../support/wire-response.ts';

export const issuer = createTestIssuer();
export const key = createProofKey();

export type Fields = readonly (readonly [name: string, value: string])[];

export interface Question {
  /** Of the question itself. */
  readonly method?: string;
  readonly target?: string;
  /** Instead of the usual forwarded fields. */
  readonly forwarded?: Fields;
  readonly fields?: Fields;
  readonly body?: string;
}

const ORIGIN = [
  ['X-Forwarded-Proto', 'https'],
  ['X-Forwarded-Host', 'api.example'],
] as const;

/** The four fields of nginx, Caddy and Traefik. */
export const asking = (method: string, uri: string): Fields => [
  ['X-Forwarded-Method', method],
  ['X-Forwarded-Uri', uri],
  ...ORIGIN,
];

export const bearer = (claims: Record<string, unknown> = {}): Fields => [
  ['Authorization', issuer.bearer(claims).authorization],
];

/** A bound token with a proof for this method and URL. */
export function bound(method: string, url: string, claims: Record<string, unknown> = {}): Fields {
  const token = issuer.boundToken(key, claims);
  return [
    ['Authorization', `DPoP ${token}`],
    ['DPoP', issuer.proof(key, { method, url }, token)],
  ];
}

/** A policy under DPoP `ALLOWED`, unless told otherwise. */
export async function startPolicy(
  routes: Routes,
  given: Partial<ServiceOptions> = {},
  fetchKeys: FetchKeys = issuer.options.fetchKeys,
) {
  const { log, logs } = createTestLog(clock, 'debug', true);
  const metrics = createMetrics();
  const dpopMode = 'ALLOWED';
  const options = { ...issuer.options, dpopMode, log, metrics, fetchKeys, ...given } as const;
  const kind = {
    name: 'forward-auth',
    createReaders: createQuestionReaders,
    isPolicy: true,
  };
  const service = composeService(routes, readServiceOptions(options), kindWith(clock, kind));
  const { server } = new Listener(service.responder, clock, 15_000);
  const questions: IncomingMessage[] = [];
  const connections = new Set<Socket>();
  server.on('request', (request) => questions.push(request));
  server.on('connection', (socket) => connections.add(socket));
  const { port, stop } = await serve(server);
  await Promise.all(service.fetchKeys());

  return {
    port,
    logs,
    service,
    /** What has been asked, probes included, and over which connections. */
    questions,
    connections,
    metrics: metrics.text,

    /** Sends a question on a connection of its own; `closes` says whether the service then closes it. */
    async ask({
      method = 'GET',
      target = '/forward-auth',
      forwarded = [],
      fields = [],
      body = '',
    }: Question) {
      const wire = await openWire(port);
      const length = body === '' ? [] : [['Content-Length', String(body.length)] as const];
      const lines = [['Host', 'gatehouse.internal'] as const, ...forwarded, ...fields, ...length];
      const head = [`${method} ${target} HTTP/1.1`, ...lines.map((line) => line.join(': '))];
      wire.send(Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`, 'latin1'));
      const isDone = (text: string) => (method === 'HEAD' ? text.endsWith('\r\n\r\n') : isWhole(text));
      const response = parseResponse(await wire.until(isDone));
      wire.destroy();
      return { ...response, closes: response.headers.get('connection') === 'close' };
    },

    async stop() {
      await stop();
      service.close();
    },
  };
}

export type Policy = Awaited<ReturnType<typeof startPolicy>>;

/** Status and the word of the body, if any. */
export const told = ({ status, text, body }: WireResponse) =>
  text === '' ? `${status}` : `${status} ${body.error}`;

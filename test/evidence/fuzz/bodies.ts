/* Sends bodies of any shape and cut to a real listener, and looks for what must never be: a crash, a body
   read for a caller who is not admitted, an answer to another request, a connection left hanging. */
import type { IncomingMessage, Server } from 'node:http';
import { connect } from 'node:net';
import { needs, open } from '../../../src/gate/rules/access.ts';
import { scope } from '../../../src/gate/rules/guards.ts';
import { get, post } from '../../../src/service/routes/route.ts';
import { json } from '../../../src/service/routes/inputs.ts';
import { tokenWith } from '../../support/caller.ts';
import { responsesIn, type RawResponse } from '../../support/raw-responses.ts';
import { startRoutes } from '../../support/routes.ts';
import { bodyCaseFrom, LIMIT_BYTES, type BodyCase, type PlannedRequest } from './body-cases.ts';
import { Random } from './random.ts';

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const AT_ONCE = 32;
const REQUEST_MILLIS = 5_000;
const HANGING_MILLIS = 20_000;

export interface BodyFigures {
  readonly connections: number;
  readonly bodies: number;
  readonly answers: number;
  /** What is wrong, each with the number by which it can be repeated. */
  readonly faults: readonly string[];
}

/** Shortens the time that a client has to send a request. */
const hasten = (server: Server) =>
  void Object.assign(server, {
    headersTimeout: REQUEST_MILLIS,
    requestTimeout: REQUEST_MILLIS,
    connectionsCheckingInterval: 100,
  });

interface Echo {
  readonly query: URLSearchParams;
  readonly body: unknown;
}

const echo = ({ query, body }: Echo) => ({ id: query.get('id'), body: body ?? null });

/** Everything received until the server has closed its side; `undefined` when it never does. */
function send(port: number, { pieces, leaves }: BodyCase): Promise<string | undefined> {
  return new Promise((resolve) => {
    let received = '';
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const timer = setTimeout(() => {
      resolve(undefined);
      socket.destroy();
    }, HANGING_MILLIS);

    const finish = () => {
      clearTimeout(timer);
      resolve(received);
      socket.destroy();
    };

    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    socket.on('error', finish).on('end', finish).on('close', finish);
    socket.on('connect', async () => {
      for (const piece of pieces) {
        if (socket.writable) socket.write(piece);
        await new Promise(setImmediate);
      }
      if (leaves === 'by a reset') socket.resetAndDestroy();
      if (leaves === 'by closing its side') socket.end();
    });
  });
}

/** The statuses allowed for a request that has arrived only in part; none if it must get no response. */
function statusesOfPart(request: PlannedRequest, leaves: BodyCase['leaves']): readonly number[] {
  if (!request.isRead) return request.statuses;

  // What has arrived may be enough to refuse it.
  const early = request.statuses.filter((status) => status !== 200);
  return leaves === 'not' ? [...early, 408] : early;
}

function faultIn(answer: RawResponse, request: PlannedRequest): string | undefined {
  if (!request.statuses.includes(answer.status)) {
    return `${answer.status} instead of ${request.statuses.join(' or ')} to ${request.id}`;
  }
  const text = Buffer.from(answer.text, 'latin1').toString('utf8');
  if (answer.status === 200 && text !== request.text) return `${text} instead of ${request.text}`;

  const closes = answer.fields.get('connection') === 'close';
  const ending = closes ? 'closes' : 'goes on';
  const isRight = request.ending === 'either' || request.ending === ending;
  return isRight ? undefined : `the connection of ${request.id} ${ending}`;
}

/** What is wrong with all that was received on a connection. */
function faultOf({ requests, length, leaves }: BodyCase, received: string): string | undefined {
  const answers = responsesIn(received.replaceAll(CONTINUE, ''));
  let start = 0;
  let continues = 0;
  for (const request of requests) {
    const headEnd = start + request.headLength;
    const end = start + request.bytes.length;
    const isWhole = end <= length;
    if (isWhole || headEnd <= length) continues += Number(request.isRead && request.expectsContinue);
    const answer = answers.shift();

    if (!isWhole) {
      // If the head is cut off, there is no request: the client gets 400 or 408, or no response at all.
      const isNothing = start === length && leaves !== 'not';
      const statuses = headEnd <= length ? statusesOfPart(request, leaves) : [400, 408];
      const isFit = answer === undefined ? leaves !== 'not' : !isNothing && statuses.includes(answer.status);
      return isFit && answers.length === 0 ? undefined : `${answer?.status} to a part of ${request.id}`;
    }

    if (answer === undefined) return `nothing to ${request.id}`;
    // The connection of a client that has closed its side ends with the last answer.
    const isEnded = leaves !== 'not' && end === length;
    const fault = faultIn(answer, isEnded ? { ...request, ending: 'either' } : request);
    if (fault !== undefined) return fault;
    if (answer.fields.get('connection') === 'close') break;
    start = end;
  }

  if (answers.length > 0) return `${answers.length} answers too many`;
  const said = received.split(CONTINUE).length - 1;
  return said === continues ? undefined : `${said} times 100 Continue instead of ${continues}`;
}

/**
 * Opens connections, beginning with number `first`, until `count` bodies are sent. The same seed gives the
 * same connections.
 */
export async function fuzzBodies(seed: number, count: number, first = 0): Promise<BodyFigures> {
  const limits = { limitBytes: LIMIT_BYTES };
  const service = await startRoutes({
    routes: [
      post('/any', open, json(undefined, limits), echo),
      post('/guarded', needs(scope('write')), json(undefined, limits), echo),
      get('/none', open, echo),
    ],
    prepare: hasten,
  });
  const credentials = {
    good: `Bearer ${tokenWith({ scope: 'write' })}`,
    poor: `Bearer ${tokenWith({ scope: 'read' })}`,
    bad: 'Bearer x.y.z',
  };
  const readers = new Map<string, IncomingMessage>();
  for (const event of ['request', 'checkContinue']) {
    service.server.on(event, (request: IncomingMessage) => {
      readers.set(String(request.url).replace(/^.*=/, ''), request);
    });
  }

  const faults: string[] = [];
  let connections = 0;
  let bodies = 0;
  let answers = 0;

  async function runNext(): Promise<void> {
    const number = first + connections;
    connections += 1;
    const one = bodyCaseFrom(new Random(seed, number), credentials, String(number));
    bodies += one.requests.length;
    const received = await send(service.port, one);
    answers += received === undefined ? 0 : received.split('HTTP/1.1 ').length - 1;

    const intruded = one.requests.find(
      ({ id, isRead }) => !isRead && (readers.get(id)?.listenerCount('data') ?? 0) > 0,
    );
    for (const { id } of one.requests) readers.delete(id);
    const isSilent = one.leaves === 'by a reset';
    const hanging = received === undefined ? 'is left hanging' : undefined;
    const wrong = isSilent || received === undefined ? undefined : faultOf(one, received);
    const fault = hanging ?? wrong ?? (intruded && `the body of ${intruded.id} was read`);
    if (fault !== undefined) faults.push(`connection ${number}: ${fault}`);
  }

  async function work(): Promise<void> {
    while (bodies < count) await runNext();
  }

  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const bugs = service.logs.filter(({ level }) => level !== 'debug');
  faults.push(...bugs.map((line) => JSON.stringify(line)));
  await service.stop();
  return { connections, bodies, answers, faults };
}

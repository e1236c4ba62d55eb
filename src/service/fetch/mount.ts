// A prefix for a Fetch handler, such as the router of another library. Promises: its request has no token,
// proof or field of a client certificate; its body is counted as it is read. Does not check what the handler
// makes of the path.
import { andThen } from '../../verify/base/clock.ts';
import { UsageError } from '../../verify/base/events.ts';
import { integer, readPlainOptions, type RulesOf } from '../../verify/base/option.ts';
import { refuse } from '../../verify/base/refusal.ts';
import type { Caller } from '../../verify/caller.ts';
import { requestUri, type RequestFacts } from '../../verify/request/facts.ts';
import { pairsOf, type Field } from '../../gate/replies/reply.ts';
import type { DecidedAccess } from '../../gate/rules/access.ts';
import { beginBody, type BodySource } from '../routes/body.ts';
import { HandlerRequest } from '../routes/handler-request.ts';
import { parsePrefix } from '../routes/pattern.ts';
import { mountedRoute, requireAccess, type MountOptions, type Route } from '../routes/route.ts';
import { isResponse } from '../routes/handler-result.ts';

type MountLimits = { readonly limitBytes?: number | undefined };

const RULES: RulesOf<MountLimits> = { limitBytes: integer(1, 1024 ** 3) };

const NO_RESPONSE = 'the handler of a mount must return a Response';
const TOO_LATE = 'the body of a Request must be read before its Response is sent';

/** What the handler of a mount receives beside the `Request`. */
export interface MountContext<Admitted> extends Pick<
  HandlerRequest<Admitted>,
  'caller' | 'signal' | 'traceparent' | 'nowMillis' | 'clientAddress' | 'authorize'
> {}

/** What the handler of a mount is. */
export interface FetchHandler<Admitted> {
  (request: Request, context: MountContext<Admitted>): Response | PromiseLike<Response>;
}

/**
 * Passes all requests at a prefix and below to a Fetch handler, except CONNECT, TRACE, and requests that a
 * route matches. A body is at most `limitBytes` long (default: `bodyLimitBytes`; at most 1 GiB).
 * Throws a `TypeError` for anything but a prefix, an access, a handler and these options.
 *
 * @example mount('/graphql', authenticated, (request, { caller }) => yoga.fetch(request, { caller }))
 */
export function mount<Admitted extends Caller<unknown> | undefined>(
  prefix: string,
  access: DecidedAccess<Admitted>,
  handler: FetchHandler<Admitted>,
  options: MountLimits = {},
): Route {
  const owner = `mount ${prefix}`;
  requireAccess(owner, access);
  if (typeof handler !== 'function') {
    throw new TypeError(`${owner}: needs a handler, such as (request) => app.fetch(request)`);
  }
  const { limitBytes } = readPlainOptions<MountLimits>(options, RULES, {}, owner);
  const segments = parsePrefix(owner, prefix);

  const bind = (values: MountOptions) => (request: HandlerRequest<Caller<unknown> | undefined>) => {
    const fetchRequest = requestFrom(request, values, limitBytes ?? values.bodyLimitBytes);
    const result: unknown = Reflect.apply(handler, undefined, [fetchRequest, request]);
    return andThen(result, requireResponse);
  };

  return mountedRoute(prefix, access, { segments, bind });
}

function requireResponse(result: unknown) {
  if (isResponse(result)) return result;
  throw new UsageError(NO_RESPONSE);
}

const isShown = ([name]: Field, hiddenField: string | undefined) =>
  !['authorization', 'dpop', hiddenField].includes(name.toLowerCase());

function requestFrom(context: HandlerRequest, options: MountOptions, limitBytes: number) {
  const { source, facts } = HandlerRequest.servedOf(context);
  const { method, rawHeaders } = facts;
  const { url = '' } = source.request;
  const body = bodyOf(source, limitBytes);
  const headers = pairsOf(rawHeaders).filter((field) => isShown(field, options.hiddenField));
  const init: RequestInit = { method, headers, body, duplex: 'half' };
  const made = new Request(originOf(facts, options) + url, init);
  // As a member of `init`, it would be made for each request.
  return Object.defineProperty(made, 'signal', { get: () => context.signal });
}

/** A path prefix of the public URL is not of the path that the service sees. */
function originOf(facts: RequestFacts, { publicUrl, trustProxy }: MountOptions) {
  if (publicUrl !== undefined) return new URL(publicUrl).origin;

  const origin = requestUri({ ...facts, path: '' }, { publicUrl, trustProxy });
  if (typeof origin === 'string') return origin;
  // A URL has a host.
  throw origin ?? refuse('host-refused');
}

function bodyOf(source: BodySource, limitBytes: number) {
  const { method = '', headers } = source.request;
  const length = Number(headers['content-length'] ?? 0);
  // RFC 9110 §15.5.14
  if (length > limitBytes) throw refuse('body-too-large');

  // RFC 9112 §6.3: either field announces a body.
  const hasBody = length > 0 || headers['transfer-encoding'] !== undefined;
  // Fetch allows no body here.
  const mayHave = hasBody && method !== 'GET' && method !== 'HEAD';
  return mayHave ? new ReadableStream(new BodyStream(source, limitBytes), { highWaterMark: 0 }) : null;
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

/** A request's body as the source of a stream. Reads nothing until the stream's reader does. */
class BodyStream {
  readonly #source;
  #bytesLeft;
  /** Once it has begun. */
  #controller: Controller | undefined;
  #isOver = false;

  constructor(source: BodySource, limitBytes: number) {
    this.#source = source;
    this.#bytesLeft = limitBytes;
  }

  pull(controller: Controller) {
    if (this.#controller === undefined) this.#begin(controller);
    else this.#source.request.resume();
  }

  cancel() {
    this.#isOver = true;
  }

  #begin(controller: Controller) {
    const source = this.#source;
    const { request, response } = source;
    this.#controller = controller;
    if (response.writableEnded) return this.#end(new UsageError(TOO_LATE));

    // An unread body is dropped after the head.
    if (response.headersSent) this.#endUnlessWhole();
    // Node closes no request after its response.
    response.on('close', () => this.#endUnlessWhole());
    // Of a whole body, nothing is lost.
    beginBody(source, (reason) => this.#end(request.readableEnded ? undefined : reason));
    if (this.#isOver) return;

    request.on('data', (chunk: Buffer) => this.#take(chunk));
    request.on('end', () => this.#end());
  }

  #take(chunk: Buffer) {
    this.#source.request.pause();
    this.#bytesLeft -= chunk.length;
    // RFC 9110 §15.5.14
    if (this.#bytesLeft < 0) this.#end(refuse('body-too-large'));
    // Node's buffers share their memory.
    else if (!this.#isOver) this.#controller?.enqueue(new Uint8Array(chunk));
  }

  /** Once what has arrived is parsed. */
  #endUnlessWhole() {
    setImmediate(() => {
      if (!this.#source.request.complete) this.#end(new UsageError(TOO_LATE));
    });
  }

  #end(error?: unknown) {
    if (this.#isOver) return;

    this.#isOver = true;
    this.#source.bodyFailure = error;
    if (error === undefined) this.#controller?.close();
    else this.#controller?.error(error);
  }
}

// The body of a request as bounded, strict JSON (docs/your-own-api.md). Asked for by the pipeline once access
// is granted, never before. Promises: not a byte is read that the head already refuses; no more is kept than
// the limit. Does not judge what the JSON says: a row's schema does.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { decodeUtf8, undefinedOn } from '../base/encoding.ts';
import { ClientGone, refuseContent } from '../base/refusal.ts';
import { fieldValues } from './fields.ts';

/** What a row takes. */
export interface BodyOptions {
  readonly limitBytes: number;
  /** Media types in lower case, without parameters. */
  readonly types: readonly string[];
}

/** RFC 8259 sets no bound; what walks JSON by recursion ends at some thousand levels. */
const MAX_DEPTH = 64;

/**
 * Emitted on the socket by the listener with the `Refused` that ends a body under way; true when somebody
 * listens.
 */
export const BODY_FAILED = 'bodyFailed';

/**
 * Reads the body and gives its JSON value. Throws `Refused`, or rejects with it, or with `ClientGone` when
 * the client has left.
 */
export async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  options: BodyOptions,
): Promise<unknown> {
  checkHead(request, options);
  // RFC 9110 §10.1.1: only now is the client told to go on.
  if (request.headers.expect !== undefined) response.writeContinue();

  return parseBody(await readBytes(request, options.limitBytes));
}

/** What the head says of the body, in the order in which it is refused. */
function checkHead({ headers, rawHeaders }: IncomingMessage, { limitBytes, types }: BodyOptions): void {
  const length = Number(headers['content-length'] ?? 0);
  // RFC 9112 §6.3: what announces a body.
  if (headers['transfer-encoding'] === undefined && length === 0) throw refuseContent('body-missing');

  // RFC 9110 §8.4, §12.5.3
  const codings = fieldValues(rawHeaders, 'content-encoding').join(',').split(',');
  const isPlain = codings.every((coding) => ['', 'identity'].includes(coding.trim().toLowerCase()));
  if (!isPlain) throw refuseContent('coding-refused', ['Accept-Encoding', 'identity']);

  // RFC 9110 §8.3.1: a field that is not a list occurs once.
  const contentTypes = fieldValues(rawHeaders, 'content-type');
  const [mediaType = '', ...parameters] = (contentTypes[0] ?? '').split(';');
  const isTaken = contentTypes.length === 1 && types.includes(mediaType.trim().toLowerCase());
  // RFC 9110 §15.5.16
  if (!isTaken) throw refuseContent('media-type-refused', ['Accept', types.join(', ')]);

  // RFC 8259 §8.1
  if (!parameters.every(isUtf8)) throw refuseContent('charset-refused');

  if (length > limitBytes) throw refuseContent('body-too-large');
}

/** Whether a parameter of a media type is not a `charset`, or names UTF-8. */
function isUtf8(parameter: string): boolean {
  const charset = /^\s*charset\s*=\s*"?([^"]*?)"?\s*$/i.exec(parameter)?.[1];
  return charset === undefined || charset.toLowerCase() === 'utf-8';
}

function readBytes(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;

  return new Promise<Buffer>((resolve, reject) => {
    const leave = () => reject(new ClientGone());
    const take = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > limitBytes) reject(refuseContent('body-too-large'));
      else chunks.push(chunk);
    };
    request.on('data', take).on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', leave).on('close', leave);
    request.socket.on(BODY_FAILED, reject);
  }).finally(() => {
    // What still comes is for nobody to keep: the reply drains it.
    request.removeAllListeners('data').pause();
    request.socket.removeAllListeners(BODY_FAILED);
  });
}

function parseBody(bytes: Buffer): unknown {
  const text = decodeUtf8(bytes);
  // RFC 8259 §8.1: no byte-order mark; JSON.parse knows that it is no white space.
  const parsed =
    text === undefined ? undefined : undefinedOn(SyntaxError, () => ({ value: JSON.parse(text) }));
  if (parsed === undefined) throw refuseContent('body-malformed');

  checkShape(parsed.value);
  return parsed.value;
}

function checkShape(value: unknown): void {
  const containers = containersOf(value);
  if (containers.some(hasRefusedMember)) throw refuseContent('body-member-refused');
}

/**
 * Every array and object in a value, level by level, so that the depth of a body cannot exhaust the stack.
 */
function containersOf(value: unknown): object[] {
  const levels: object[][] = [];
  let level = [value].filter(isContainer);
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > MAX_DEPTH) throw refuseContent('body-too-deep');

    levels.push(level);
    level = level.flatMap((container) => Object.values(container).filter(isContainer));
  }
  return levels.flat();
}

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Members by which code that copies objects would change what all objects inherit. */
function hasRefusedMember(container: object): boolean {
  if (Object.hasOwn(container, '__proto__')) return true;
  if (!Object.hasOwn(container, 'constructor')) return false;

  const { constructor } = container;
  return isContainer(constructor) && Object.hasOwn(constructor, 'prototype');
}

// A body as bytes, such as an upload, or a webhook whose signature covers the bytes. Promises: no other code
// holds them. Does not check their content.
import { readBody } from '../routes/body.ts';
import { readBodyOptions, type BodyInput, type BodyOptions } from '../routes/inputs.ts';

/** In newer types, Fetch and Web Crypto refuse bytes that may be in a `SharedArrayBuffer`. */
type Bytes = Uint8Array & { readonly buffer: ArrayBuffer };

/**
 * Accepts a body as bytes, read once access is granted; the handler's `body` is a `Uint8Array`. Without
 * `types`, any media type is accepted, or none. Throws a `TypeError` for an invalid limit or media type.
 *
 * @example
 * post('/hooks/payments', open, bytes({ limitBytes: 65_536 }), ({ body }) => verifyHook(body))
 */
export function bytes(options: BodyOptions = {}): BodyInput<Bytes> {
  const { limitBytes, types = [] } = readBodyOptions('bytes', options);
  return { input: 'body', limitBytes, types, read: readBody, check: copy };
}

/** Small buffers of Node share their memory. */
const copy = (body: unknown) => new Uint8Array(Object(body));

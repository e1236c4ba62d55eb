// A reply as a value: status, header fields, JSON. Promises: JSON in UTF-8 with Content-Length, never cached,
// never sniffed, and no field that cannot be written. Does not say which reply a refusal gets (challenge.ts
// does), or how it is sent (write.ts).

/** Written once, it may be sent often. */
export interface Reply {
  readonly status: number;
  /** All names and values, in turn. */
  readonly fields: readonly string[];
  readonly text: string;
  /** Whether the connection ends with it. */
  readonly closes?: boolean;
}

/** RFC 9111 §5.2.2.5: nothing that depends on a token may be stored. */
const ALWAYS = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'];
const JSON_ALWAYS = ['Content-Type', 'application/json; charset=utf-8', ...ALWAYS];

/** A JSON reply; `headers` are more fields, in turn. Throws a `TypeError` for what cannot be sent. */
export function reply(status: number, body: object, headers: readonly string[] = []): Reply {
  checkFields(headers);
  const text = JSON.stringify(body);
  const length = String(Buffer.byteLength(text));
  return { status, fields: [...JSON_ALWAYS, 'Content-Length', length, ...headers], text };
}

/** A reply without content (RFC 9110 §15.3.5). Throws as `reply` does. */
export function noContent(headers: readonly string[]): Reply {
  checkFields(headers);
  return { status: 204, fields: [...ALWAYS, ...headers], text: '' };
}

// RFC 9110 §5.6.2
const NAME = /^[!#$%&'*+.^_`|~\w-]+$/;

// RFC 9110 §5.5
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Node looks at fields only when they are written, and then nobody could answer 500 any more. */
function checkFields(headers: readonly string[]): void {
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] ?? '';
    const value = headers[index + 1];
    if (!NAME.test(name) || value === undefined || !VALUE.test(value)) {
      throw new TypeError('a header field that cannot be sent');
    }
  }
}

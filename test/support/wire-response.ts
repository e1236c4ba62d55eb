/* Reads a response from raw bytes, and sends header fields and targets that no well-behaved client sends. */
import { openWire } from './client.ts';

export interface WireResponse {
  readonly status: number;
  /** Header fields by name in lower case; repeated ones joined by a line feed. */
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
  readonly body: any;
}

const headEnd = (received: string) => received.indexOf('\r\n\r\n');

/** The first response in the received text. */
export function parseResponse(received: string): WireResponse {
  const [statusLine = '', ...fields] = received.slice(0, headEnd(received)).split('\r\n');
  const headers = new Map<string, string>();
  for (const field of fields) {
    const [, name = '', value = ''] = /^([^:]+): ?(.*)$/.exec(field) ?? [];
    const before = headers.get(name.toLowerCase());
    headers.set(name.toLowerCase(), before === undefined ? value : `${before}\n${value}`);
  }
  const text = received.slice(headEnd(received) + 4);
  return {
    status: Number(statusLine.split(' ')[1]),
    headers,
    text,
    body: text === '' ? undefined : JSON.parse(text),
  };
}

/** Whether the first response, not to a HEAD, has arrived completely. */
export function isWhole(received: string): boolean {
  if (received.startsWith('HTTP/1.1 204')) return headEnd(received) >= 0;
  const length = /^content-length: (\d+)\r$/im.exec(received)?.[1];
  return (
    headEnd(received) >= 0 &&
    length !== undefined &&
    received.length >= headEnd(received) + 4 + Number(length)
  );
}

/** The response to a request line and header lines, sent verbatim. */
export async function askRaw(
  port: number,
  requestLine: string,
  ...lines: readonly string[]
): Promise<WireResponse> {
  const wire = await openWire(port);
  wire.send(Buffer.from(`${[requestLine, ...lines].join('\r\n')}\r\n\r\n`, 'latin1'));
  const received = await wire.until(isWhole);
  wire.destroy();
  return parseResponse(received);
}

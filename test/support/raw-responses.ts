/* The responses on a bare connection, one after another, and the form of a refusal there. */
import { strict as assert } from 'node:assert';
import { REFUSALS } from '../../src/verify/base/refusal.ts';

export interface RawResponse {
  readonly status: number;
  readonly fields: ReadonlyMap<string, string>;
  readonly text: string;
}

/** The responses on a connection, each with as much content as its Content-Length says. */
export function responsesIn(received: string): RawResponse[] {
  const responses: RawResponse[] = [];
  for (let rest = received; rest !== '';) {
    const end = rest.indexOf('\r\n\r\n');
    assert.ok(end > 0, `not a response: ${rest.slice(0, 100)}`);
    const [line = '', ...lines] = rest.slice(0, end).split('\r\n');
    const fields = new Map(
      lines.map((field) => {
        const colon = field.indexOf(': ');
        return [field.slice(0, colon).toLowerCase(), field.slice(colon + 2)];
      }),
    );
    assert.match(line, /^HTTP\/1\.1 \d{3} [A-Z]/);
    const length = Number(fields.get('content-length') ?? 0);
    responses.push({
      status: Number(line.slice(9, 12)),
      fields,
      text: rest.slice(end + 4, end + 4 + length),
    });
    rest = rest.slice(end + 4 + length);
  }
  return responses;
}

export const statusesIn = (received: string) => responsesIn(received).map(({ status }) => status);

export const MALFORMED = REFUSALS.invalid_request['malformed-http'];

/** Asserts that the last (or only) response is this refusal, in the usual form, and closes. */
export function assertRefused(
  received: string,
  status: number,
  error: string,
  message: string,
  count = 1,
): void {
  const responses = responsesIn(received);
  assert.equal(responses.length, count);
  const { status: found, fields, text } = responses[count - 1]!;
  assert.deepEqual([found, JSON.parse(text)], [status, { error, message }]);
  assert.equal(Object.keys(JSON.parse(text)).join(), 'error,message');
  const fixed = ['content-type', 'cache-control', 'x-content-type-options', 'connection'].map((name) =>
    fields.get(name),
  );
  assert.deepEqual(fixed, ['application/json; charset=utf-8', 'no-store', 'nosniff', 'close']);
  assert.ok(!Number.isNaN(Date.parse(fields.get('date') ?? '')));
}

/* Reads a reply back: the header fields besides those of every JSON response, and the body. */
import assert from 'node:assert/strict';
import { jsonReply, type Reply } from '../../src/gate/replies/reply.ts';

export interface ReadReply {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: unknown;
  readonly closes: boolean;
}

export function readReply({ status, fields, content, closes = false }: Reply): ReadReply {
  const body = JSON.parse(String(content));
  const common = jsonReply(status, JSON.stringify(body)).fields;
  assert.deepEqual(fields.slice(0, common.length), common);
  return { status, headers: fields.slice(common.length), body, closes };
}

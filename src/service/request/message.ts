// The form of a request: HTTP version, framing, number of header fields, and expectation. Does not check Host
// or target: gate/identify.ts does.
import { refuse } from '../../verify/base/refusal.ts';
import type { Exchange } from './exchange.ts';

export const MAX_FIELDS = 200;

export function checkMessage({ httpVersion, rawHeaders, headers }: Exchange['request']) {
  const { expect, 'transfer-encoding': coding } = headers;
  // RFC 9112 §2.3, §6.1: Node accepts 0.9 and 2.0, too. HTTP/1.0 has no transfer codings.
  const isKnown = httpVersion === '1.1' || (httpVersion === '1.0' && coding === undefined);
  // RFC 9112 §6.1
  const isFramed = coding === undefined || coding.toLowerCase() === 'chunked';
  if (!isKnown || !isFramed) return refuse('malformed-http');
  if (rawHeaders.length > 2 * MAX_FIELDS) return refuse('header_fields_too_large');

  // RFC 9110 §10.1.1. Node joins repeated fields.
  const isMet = expect === undefined || expect.toLowerCase() === '100-continue';
  return isMet ? undefined : refuse('expectation_failed');
}

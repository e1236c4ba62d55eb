// The trace of a request (W3C Trace Context), for the log and for a handler's own requests. No check reads
// it.
import { fieldValues } from '../verify/request/facts.ts';

/** W3C Trace Context §3.2.2, §4.3: no id is zero. Versions after 00 may be longer. */
const TRACEPARENT =
  /^(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$/;

/** If there is exactly one and it is well-formed. */
export function traceparentOf(rawHeaders: readonly string[]): string | undefined {
  const [value = '', ...others] = fieldValues(rawHeaders, 'traceparent');
  return others.length === 0 && TRACEPARENT.test(value) ? value : undefined;
}

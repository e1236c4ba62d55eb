// What a refused token or proof was compared with, for the log at `debug`. Promises: it says what options,
// routes and keys say, and of the request only its bounded host and path; nothing of a token or proof.
import { printable, printableSetting, type Fields } from '../verify/base/events.ts';
import { requestUri, type UriOptions } from '../verify/request/uri.ts';
import type { Issuer } from '../verify/token/verify.ts';
import type { RequestRecord } from './record.ts';

export type Expect = (record: RequestRecord) => Fields;

export function createExpect(issuers: readonly Issuer[], options: UriOptions): Expect {
  return function expect(record) {
    const { reason } = record;
    const named = issuers.find(({ name }) => name === record.issuerName);
    if (reason === 'key-unknown') return { knownKeys: named?.keys.usable() };
    if (reason === 'audience-mismatch') return { expectedAudience: named?.audience.map(printableSetting) };
    if (reason === 'proof-htu') return { expectedHtu: expectedUri(record, options) };
    if (reason !== 'issuer-mismatch') return {};

    // Of several issuers, `iss` names none.
    const compared = named === undefined ? issuers : [named];
    return { expectedIssuer: compared.map(({ issuer }) => printableSetting(issuer)) };
  };
}

/** With the route's pattern in place of a path, which may hold data. */
function expectedUri({ facts, route }: RequestRecord, options: UriOptions) {
  const uri = facts && requestUri(facts, options);
  if (typeof uri !== 'string') return undefined;

  const { length } = facts?.path ?? '';
  const path = route?.pattern ?? printable(uri.slice(uri.length - length));
  return printableSetting((options.publicUrl ?? printable(uri.slice(0, -length))) + path);
}

// Preflights: what a browser asks before it sends a request to another origin (Fetch standard §3.2).
import type { Reply } from '../gate/reply.ts';
import { fieldValues } from '../verify/request/fields.ts';
import type { RequestFacts } from '../verify/request/uri.ts';

/** 204 (RFC 9110 §15.3.5). */
export const NO_CONTENT: Reply = {
  status: 204,
  fields: ['cache-control', 'no-store', 'x-content-type-options', 'nosniff'],
  content: '',
};

/** Fetch standard §3.2.2: a preflight has these fields. */
const PREFLIGHT_FIELDS = ['origin', 'access-control-request-method'];

export const isPreflight = ({ method, rawHeaders }: RequestFacts) =>
  method === 'OPTIONS' && PREFLIGHT_FIELDS.every((name) => fieldValues(rawHeaders, name).length > 0);

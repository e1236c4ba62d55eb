// Preflights: what a browser asks before it sends a request to another origin (Fetch standard §3.3).
import { fieldValues, type RequestFacts } from '../verify/request/facts.ts';

/** Fetch standard §3.3.2 */
const PREFLIGHT_FIELDS = ['origin', 'access-control-request-method'];

export const isPreflight = ({ method, rawHeaders }: RequestFacts) =>
  method === 'OPTIONS' && PREFLIGHT_FIELDS.every((name) => fieldValues(rawHeaders, name).length > 0);

// Request target → path. Never parses the target as a URL (`//host/x` would change the host).
import { refuse, type Refused } from '../base/refusal.ts';

/** Accepts only the origin form (RFC 9112 §3.2.1). Drops the query. */
export function targetPath(target: string): string | Refused {
  // Stricter: RFC 9112 §3.2.2 has servers accept the absolute form.
  if (target[0] !== '/') return refuse('target-refused');

  const end = target.indexOf('?');
  return end < 0 ? target : target.slice(0, end);
}

/* The faults of a provider, and what the log calls them. */
import type { Fault } from '../idp/faults.ts';
import type { Provider } from '../idp/provider.ts';
import type { FetchErrorReason } from '../../src/verify/base/events.ts';

export interface FaultPlan {
  readonly name: string;
  readonly reason: FetchErrorReason;
  begin(provider: Provider): Promise<void>;
}

const faulty = (
  name: string,
  reason: FetchErrorReason,
  where: 'keySet' | 'discovery' | 'all',
  fault: Fault,
): FaultPlan => ({ name, reason, begin: (provider) => provider.fault(where, fault) });

/** Fails without a resolver: a label has at most 63 characters. */
const NOWHERE = `https://${'x'.repeat(64)}.test/keys`;

export const FAULTS: readonly FaultPlan[] = [
  faulty('hanging before the headers', 'timeout', 'keySet', 'hang-before-headers'),
  faulty('hanging after the headers', 'timeout', 'keySet', 'hang-after-headers'),
  faulty('dripping', 'timeout', 'keySet', 'drip'),
  faulty('hanging at discovery', 'timeout', 'discovery', 'hang-before-headers'),
  faulty('connections refused', 'connection-failed', 'all', 'refuse'),
  faulty('connections reset', 'connection-failed', 'all', 'reset'),
  faulty('101', 'connection-failed', 'keySet', 'switch-protocols'),
  faulty('101 at discovery', 'connection-failed', 'discovery', 'switch-protocols'),
  faulty('500', 'status-refused', 'all', { status: 500 }),
  faulty('404', 'status-refused', 'all', { status: 404 }),
  {
    name: 'redirect',
    reason: 'status-refused',
    begin: (provider) => provider.fault('keySet', { redirect: `${provider.issuer}.well-known/jwks.json` }),
  },
  faulty('redirect to http:', 'status-refused', 'keySet', { redirect: 'http://127.0.0.1:1/keys' }),
  faulty('a page of HTML', 'not-a-json-object', 'all', 'html'),
  faulty('truncated JSON', 'not-a-json-object', 'keySet', 'truncated-json'),
  faulty('{}', 'not-a-key-set', 'keySet', 'empty-object'),
  faulty('{"keys":[]}', 'no-usable-key', 'keySet', 'empty-keys'),
  faulty('10 MB', 'too-large', 'keySet', 'too-large'),
  faulty('100,000 keys', 'too-many-keys', 'keySet', 'many-keys'),
  faulty('certificate for another host', 'certificate-refused', 'all', 'wrong-host-certificate'),
  faulty('expired certificate', 'certificate-refused', 'all', 'expired-certificate'),
  {
    name: 'name that does not resolve',
    reason: 'connection-failed',
    begin: async (provider) => provider.discoveryDocument({ jwks_uri: NOWHERE }),
  },
];

/** Ends the fault. */
export async function endFaults(provider: Provider): Promise<void> {
  provider.discoveryDocument(undefined);
  await provider.fault('all', undefined);
}

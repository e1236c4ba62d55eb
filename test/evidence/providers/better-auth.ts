/* The real better-auth with its JWT plugin, its tables in memory: one user, who signs up, and the tokens of her session. */
import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import { toNodeHandler } from 'better-auth/node';
import { jwt } from 'better-auth/plugins';
import { listen, type Listening } from './tls.ts';

export type JwtOptions = NonNullable<Parameters<typeof jwt>[0]>;

export interface BetterAuth extends Listening {
  /** From `/api/auth/token`, by the cookie of the session. */
  token(): Promise<string>;
  /** The session itself: what the cookie holds. */
  readonly session: string;
  /** Takes its signing keys away, so that it makes a new one. */
  rotate(): void;
}

const JSON_TYPE = { 'content-type': 'application/json' };
const ALICE = { name: 'Alice', email: 'alice@example.com', password: 'a long enough password' };

export async function startBetterAuth(options?: JwtOptions): Promise<BetterAuth> {
  const tables: Record<string, object[]> = {
    user: [],
    session: [],
    account: [],
    verification: [],
    jwks: [],
  };

  const create = (domain: string) =>
    betterAuth({
      baseURL: `https://${domain}`,
      secret: 'a secret of at least thirty-two characters',
      database: memoryAdapter(tables),
      emailAndPassword: { enabled: true },
      telemetry: { enabled: false },
      plugins: [jwt(options)],
    });

  const listening = await listen((domain) => toNodeHandler(create(domain)));
  const base = `https://${listening.domain}`;
  const signedUp = await fetch(`${base}/api/auth/sign-up/email`, {
    method: 'POST',
    headers: { ...JSON_TYPE, origin: base },
    body: JSON.stringify(ALICE),
  });
  const cookie = signedUp.headers
    .getSetCookie()
    .map((text) => text.split(';')[0])
    .join('; ');

  return {
    ...listening,
    token: async () => {
      const response = await fetch(`${base}/api/auth/token`, { headers: { cookie } });
      return String(((await response.json()) as { token: unknown }).token);
    },
    session: decodeURIComponent(cookie.split('=')[1] ?? ''),
    rotate: () => {
      tables.jwks = [];
    },
  };
}

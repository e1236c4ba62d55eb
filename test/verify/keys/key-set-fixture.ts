/* A key set with a provider that answers when the test says so, under a clock that the test moves. */
import { andThen, type MaybePromise } from '../../../src/verify/base/clock.ts';
import type { JsonObject } from '../../../src/verify/base/encoding.ts';
import type { Count } from '../../../src/verify/base/events.ts';
import { factsOf, type Algorithm, type VerificationKey } from '../../../src/verify/keys/jwk.ts';
import { FetchError } from '../../../src/verify/keys/jwks.ts';
import { KeySet } from '../../../src/verify/keys/key-set.ts';
import { createLog } from '../../../src/options/log.ts';
import { Refused, type Refusal } from '../../../src/verify/base/refusal.ts';
import { TestClock } from '../../support/clock.ts';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;

/** An odd integer of exactly this many bits, base64url; importing it needs no prime factors. */
export function integer(bits: number, fill = 0xff): string {
  const bytes = Buffer.alloc(Math.ceil(bits / 8), fill);
  bytes[0] = 0xff >> ((8 - (bits % 8)) % 8);
  bytes[bytes.length - 1] = fill | 1;
  return bytes.toString('base64url');
}

/** A usable JWK; the same `fill` gives the same key. `undefined` members are left out. */
export function jwk(
  kid: string | undefined,
  change: Record<string, unknown> = {},
  fill = 0x55,
): Record<string, unknown> {
  const members = { kty: 'RSA', kid, use: 'sig', alg: 'RS256', n: integer(2048, fill), e: 'AQAB', ...change };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

export const kidOf = (key: VerificationKey) => factsOf(key).kid;

export const thumbprintOf = (key: VerificationKey) => factsOf(key).thumbprint;

/** The provider's answer to a fetch. */
type Response = (call: { resolve(document: JsonObject): void; reject(failure: unknown): void }) => void;

const inOneWord = (result: VerificationKey | Refusal) => ('reason' in result ? result.reason : 'found');

export class KeySetFixture {
  readonly clock = new TestClock(Date.UTC(2030, 0, 1));
  readonly logs: Record<string, any>[] = [];
  readonly keys: KeySet;
  /** The result of each fetch. */
  readonly results: string[] = [];
  #fetches = 0;
  #calls: Parameters<Response>[0][] = [];
  #lastAnswer: Response = () => {};
  #underWay = 0;
  /** The most simultaneous fetches so far. */
  overlap = 0;
  /** Whether an unknown `kid` may cause a fetch. */
  mayFetchForKid = true;

  constructor() {
    // Not 0, since no clock starts with the process.
    this.clock.advance(12_345);
    const log = createLog('debug', (line) => this.logs.push(JSON.parse(line)), this.clock.now);

    const count: Count = (event, word, issuer) => {
      const isExpected = event === 'key fetch' && issuer === 'partner';
      this.results.push(isExpected ? word : `${event} of ${issuer}: ${word}`);
    };

    const around = { clock: this.clock, log, count };
    this.keys = new KeySet(
      'partner',
      () => this.#fetch(),
      around,
      undefined,
      () => this.mayFetchForKid,
    );
  }

  #fetch(): Promise<JsonObject> {
    this.#fetches += 1;
    this.#underWay += 1;
    this.overlap = Math.max(this.overlap, this.#underWay);
    return new Promise<JsonObject>((resolve, reject) => this.#calls.push({ resolve, reject })).finally(() => {
      this.#underWay -= 1;
    });
  }

  /** The number of fetches so far. */
  get fetches(): number {
    return this.#fetches;
  }

  /** Answers the running fetch, or a new one, with these keys. Resolves when that has taken effect. */
  response(...keys: unknown[]): Promise<void> {
    return this.responseDocument({ keys });
  }

  /** Answers with this document, which need not be a key set. */
  responseDocument(document: object): Promise<void> {
    return this.#settle(({ resolve }) => resolve(structuredClone(document) as JsonObject));
  }

  /** Lets the running fetch, or a new one, fail. */
  fail(reason: FetchError['reason'] = 'timeout', code?: string): Promise<void> {
    return this.failWith(new FetchError(reason, code));
  }

  failWith(failure: unknown): Promise<void> {
    return this.#settle(({ reject }) => reject(failure));
  }

  async #settle(response: Response): Promise<void> {
    const settled = this.keys.refresh();
    const call = this.#calls.shift();
    if (call === undefined) throw new Error('no fetch is running');
    this.#lastAnswer = response;
    response(call);
    await settled;
  }

  /** What `find` returns: the key, the refusal, or a promise of one of them. */
  look(kid?: string, algorithm: Algorithm = 'RS256'): MaybePromise<VerificationKey | Refusal> {
    return andThen(this.keys.find(kid, algorithm), (found) =>
      found instanceof Refused ? found.refusal : found,
    );
  }

  /** The same as a word: `found`, `waits`, or the reason of the refusal. */
  outcome(kid?: string, algorithm?: Algorithm): string {
    const result = this.look(kid, algorithm);
    return result instanceof Promise ? 'waits' : inOneWord(result);
  }

  /** The final outcome of a request for this key. */
  async request(kid?: string, algorithm?: Algorithm): Promise<string> {
    return inOneWord(await this.look(kid, algorithm));
  }

  /** The same while the provider repeats its last answer. */
  async verdict(kid?: string): Promise<string> {
    let verdict: string | undefined;
    void this.request(kid).then((end) => {
      verdict = end;
    });
    while (verdict === undefined) await (this.#calls.length > 0 ? this.#settle(this.#lastAnswer) : undefined);
    return verdict;
  }

  /** The lines with this message, without their time and the name of the issuer. */
  logged(message: string): Record<string, unknown>[] {
    return this.logs
      .filter((line) => line.message === message)
      .map(({ time: _, message: __, issuer: ___, ...fields }) => fields);
  }
}

/** A key set that holds these keys. */
export async function holding(...keys: unknown[]): Promise<KeySetFixture> {
  const fixture = new KeySetFixture();
  await fixture.response(...keys);
  return fixture;
}

/** A key set that holds the key `a`, fetched this many milliseconds ago. */
export async function aged(millis = 0): Promise<KeySetFixture> {
  const fixture = await holding(jwk('a'));
  fixture.clock.advance(millis);
  return fixture;
}

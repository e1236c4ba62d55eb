// Types alone: what a guard of `gatehouse-http/decisions` does further than compare claims. A program that
// makes no such guard loads nothing of it.
import type { MaybePromise } from '../../verify/base/clock.ts';
import type { Surroundings } from '../../verify/base/events.ts';
import type { Refused } from '../../verify/base/refusal.ts';
import type { Caller } from '../../verify/caller.ts';
import type { RequestFacts } from '../../verify/request/facts.ts';
import type { Guard, MadeGuard } from './guards.ts';

export type { Surroundings };

/** What a decision is asked about, beside the caller. */
export interface Question {
  readonly facts: RequestFacts;
  /** Of the route. */
  readonly readParameters?: () => object;
  /** Of Node or Fetch. Its socket or signal tells that the client has left. */
  readonly request?: unknown;
}

/** Asks and, unless that refuses, `others` one at a time. Never throws or rejects. */
export type Wait = (
  caller: Caller,
  question: Question,
  surroundings: Surroundings,
  others: readonly Wait[],
) => MaybePromise<Refused | undefined>;

/** Of a guard that waits in place of `passes`, once all other guards have passed. */
interface Waits {
  readonly wait: Wait;
}

/** Of a guard that makes the caller that the handler gets. */
interface Admits<Claims> {
  readonly admit: (caller: Caller) => Caller<Claims>;
}

/** Made by `decision`. */
export interface Decision extends MadeGuard<Waits> {}

/** Made by `claims`. */
export interface ClaimsGuard<Claims> extends MadeGuard<Admits<Claims>> {}

export type PlainGuard<Claims> = Guard | ClaimsGuard<Claims>;

/** A guard of any kind, as an access lists it. */
export interface AnyGuard extends MadeGuard<Partial<Waits & Admits<unknown>> | undefined> {}

export type Several<Each> = readonly [Each, ...Each[]];

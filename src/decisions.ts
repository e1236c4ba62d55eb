// The entry point `gatehouse-http/decisions`: guards that wait, for actors, and for claims of a form.
export {
  decision,
  type DecisionFunction,
  type DecisionOptions,
  type DecisionRequest,
} from './options/decisions.ts';
export { actor, actorOf, claims, notDelegated } from './options/claims.ts';
export type { ClaimsGuard, Decision } from './gate/rules/further.ts';
export type { Guard } from './gate/rules/guards.ts';
export type { DecidedAccess } from './gate/rules/access.ts';

/* The types of the guards of `gatehouse-http/decisions`. */
import { actor, claims, decision, notDelegated, type DecidedAccess } from '../../src/decisions.ts';
import { createGate, get, needs, open, scope, under, type Access, type Caller } from '../../src/gatehouse.ts';
import type { Authorization, RequestOf, Schema } from '../../src/gatehouse.ts';
import type { JsonObject } from '../../src/verify/base/encoding.ts';
import { is } from '../support/same-type.ts';

interface Employee {
  readonly department: string;
  readonly since: Date;
}

declare const schema: Schema<Employee>;
declare const text: Schema<string>;
declare const caller: Caller;

const mayPay = decision('may pay', () => true);
const gate = createGate({ domain: 'a', audience: 'b' });

const plain = needs(scope('a'), actor('x'), notDelegated);
const decided = needs(scope('a'), mayPay);
const typed = needs(scope('a'), claims(schema));
const both = needs(claims(schema), mayPay);
const alone = needs(mayPay);

is<Access<Caller<JsonObject>>>()(plain);
is<DecidedAccess<Caller<JsonObject>>>()(decided);
is<DecidedAccess<Caller<JsonObject>>>()(alone);
is<Access<Caller<Employee>>>()(typed);
is<DecidedAccess<Caller<Employee>>>()(both);

// @ts-expect-error an access that may wait is not one that does not: `refusal` of a promise is nothing
export const forgotten: Access<Caller> = decided;

is<Authorization<Caller>>()(gate.authorize(caller, plain));
is<Promise<Authorization<Caller>>>()(gate.authorize(caller, decided));
is<Authorization<Caller<Employee>>>()(gate.authorize(caller, typed));
is<Promise<Authorization<Caller<Employee>>>>()(gate.authorize(caller, both));

// @ts-expect-error nobody waited
export const { refusal } = gate.authorize(caller, decided);

export const routes = [
  get('/a', typed, ({ caller }) => ({ is: caller.claims.since.getTime() })),
  get('/b', both, ({ caller }) => ({ is: caller.claims.department })),
  get('/c', decided, ({ caller }) => ({ is: caller.claims.department })),
  get('/d', needs(claims(text)), ({ caller }) => ({ is: caller.claims.toUpperCase() })),
  // @ts-expect-error what the schema does not give
  get('/e', typed, ({ caller }) => ({ is: caller.claims.sub })),
];

export const declared = ({ caller: { claims: shown } }: RequestOf<'/a', typeof both>): string =>
  shown.department;

export const rules = [under('/a', plain), under('/a', decided), under('/a', typed), under('/a', both)];

// @ts-expect-error everyone
under('/a', open);

// @ts-expect-error more than a boolean
decision('may pay', () => 1);

// @ts-expect-error nor a promise of more
decision('may pay', async () => 'true');

decision(
  'may pay',
  async ({ signal, caller: who, parameters: { id } }) => signal.aborted && id === who.subject,
);

// @ts-expect-error no subject
actor();

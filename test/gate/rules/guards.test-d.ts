/* The types of guards: what does not compile. */
import { claimCheck } from '../../../src/gate/rules/guards.ts';

claimCheck('is an adult', (claim) => Number(claim('age')) >= 18);

// @ts-expect-error a promise would refuse everybody
claimCheck('is an adult', async (claim) => Number(claim('age')) >= 18);

// @ts-expect-error nor may it be one sometimes
claimCheck('is an adult', (claim) => (claim('age') === undefined ? false : Promise.resolve(true)));

// @ts-expect-error what merely counts as true is no verdict
claimCheck('has an age', (claim) => claim('age'));

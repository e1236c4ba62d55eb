/* Gives mutated tokens, Authorization values, proofs, key sets and YAML to gatehouse and to others, and
   compares what they say. Fails when gatehouse accepts what another refuses, reads it otherwise, or throws
   anything but a refusal; and when it is stricter without a reason in reasons.ts. FUZZ_SEED and
   FUZZ_ITERATION repeat a case; FUZZ_SECONDS is how long to go on (60), and FUZZ_TOKENS how many tokens at
   least (0); FUZZ_TARGETS names the only targets (token,proof). Then sends FUZZ_BODIES bodies (100000) to a
   listener, which may accept, refuse or time out each. FUZZ_CONNECTION (0) is the number of the first
   connection.

   Shows: random inputs that gatehouse treats differently from `jose`, `fast-jwt` or `yaml` (`FUZZ_SECONDS`,
   `FUZZ_TOKENS`, `FUZZ_BODIES`, `FUZZ_SEED`).
   Takes: 2 min.
   Needs: packages. */
import { randomInt } from 'node:crypto';
import { ALGORITHM_NAMES } from '../../../src/verify/keys/jwk.ts';
import { fuzzAuthorization } from './authorization.ts';
import { fuzzBodies } from './bodies.ts';
import { fuzzKeySet } from './key-sets.ts';
import { spelled, type Outcome } from './outcome.ts';
import { fuzzProof } from './proofs.ts';
import { Random } from './random.ts';
import { reasonFor } from './reasons.ts';
import { fuzzToken } from './tokens.ts';
import { fuzzYaml } from './yaml.ts';

const TARGETS: Readonly<Record<string, (random: Random) => Promise<Outcome>>> = {
  token: fuzzToken,
  authorization: fuzzAuthorization,
  proof: fuzzProof,
  'key set': fuzzKeySet,
  yaml: fuzzYaml,
};

/** How often each target comes up. */
const TURNS = [
  'token',
  'token',
  'token',
  'token',
  'authorization',
  'authorization',
  'authorization',
  'proof',
  'proof',
  'key set',
  'yaml',
  'yaml',
  'yaml',
  'yaml',
] as const;

/** Cases that run at once; they share nothing that changes. */
const AT_ONCE = 16;
const MAX_FAILURES = 20;
/** If a target has accepted nothing after so many inputs, the fuzzer is at fault. */
const ENOUGH = 20_000;

const seed = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31));
const only = process.env.FUZZ_ITERATION;
// The other libraries refuse by throwing, and building the stack costs most. A repeated case keeps its stack.
if (only === undefined) Error.stackTraceLimit = 0;
const wanted = (process.env.FUZZ_TARGETS ?? Object.keys(TARGETS).join()).split(',');
const strange = wanted.filter((name) => !Object.hasOwn(TARGETS, name));

if (strange.length > 0) {
  throw new Error(`FUZZ_TARGETS: ${strange.join()} is none of ${Object.keys(TARGETS).join(', ')}`);
}

const leastTokens = Number(process.env.FUZZ_TOKENS ?? 0);
const end = performance.now() + Number(process.env.FUZZ_SECONDS ?? 60) * 1000;

interface Tally {
  inputs: number;
  accepted: number;
  refused: number;
  stricter: number;
}

const newTally = (): Tally => ({ inputs: 0, accepted: 0, refused: 0, stricter: 0 });

const tallies = new Map(Object.keys(TARGETS).map((target) => [target, newTally()]));

/** How many tokens and proofs of each algorithm were accepted. */
const signed = new Map<string, number>(
  ['token', 'proof'].flatMap((target) => ALGORITHM_NAMES.map((name) => [`${target} ${name}`, 0] as const)),
);

const classes = new Map<string, { count: number; example: number }>();
let failures = 0;

/** What is wrong with the outcome of a case, if anything is. */
function faultOf(target: string, { ours, others }: Outcome): string | undefined {
  for (const [name, theirs] of Object.entries(others)) {
    if (ours.accepted && !theirs.accepted) return `accepted here and refused by ${name} (${theirs.reason})`;
    if (ours.accepted && theirs.accepted && ours.reading !== theirs.reading) {
      return `read otherwise by ${name}: ${theirs.reading.slice(0, 500)} instead of ${ours.reading.slice(0, 500)}`;
    }
    if (!ours.accepted && theirs.accepted && reasonFor(target, ours.reason) === undefined) {
      return `refused here (${ours.reason}) and accepted by ${name}, without a reason in reasons.ts`;
    }
  }
  return undefined;
}

function note(name: string, iteration: number): void {
  const known = classes.get(name);
  classes.set(name, { count: (known?.count ?? 0) + 1, example: known?.example ?? iteration });
}

function count(target: string, outcome: Outcome, iteration: number): void {
  const { ours, others, leniency, algorithm } = outcome;
  const tally = tallies.get(target)!;
  const accepting = Object.keys(others).filter((name) => others[name]!.accepted);
  tally.inputs += 1;
  const kind = `${target} ${algorithm}`;
  if (algorithm !== undefined) signed.set(kind, (signed.get(kind) ?? 0) + 1);
  if (ours.accepted) tally.accepted += 1;
  else if (accepting.length === 0) tally.refused += 1;
  else {
    tally.stricter += 1;
    note(
      `${target}: ${ours.reason} | ${accepting.join(', ')} | ${reasonFor(target, ours.reason)}`,
      iteration,
    );
  }
  if (leniency !== undefined) note(`${target}: taken by decision | gatehouse | ${leniency}`, iteration);
}

const isEnough = () => performance.now() >= end && tallies.get('token')!.inputs >= leastTokens;

async function run(iteration: number): Promise<void> {
  const random = new Random(seed, iteration);
  const target = random.pick(TURNS);
  if (!wanted.includes(target)) return;

  let input: unknown;
  let fault: string | undefined;
  try {
    const outcome = await TARGETS[target]!(random);
    input = outcome.input;
    fault = faultOf(target, outcome);
    count(target, outcome, iteration);
    if (only !== undefined) console.log(target, JSON.stringify(outcome, null, 2));
  } catch (failure) {
    fault = `threw ${failure instanceof Error ? failure.stack : spelled(failure)}`;
  }
  if (fault === undefined) return;
  failures += 1;
  console.error(`\n${target}: ${fault}\n  ${spelled(input)?.slice(0, 2000)}`);
  console.error(`  repeat: FUZZ_SEED=${seed} FUZZ_ITERATION=${iteration} npm run evidence fuzz`);
}

console.log(`FUZZ_SEED=${seed}`);
let iteration = Number(only ?? 0);

do {
  const batch = Array.from({ length: only === undefined ? AT_ONCE : 1 }, (_, index) =>
    run(iteration + index),
  );
  await Promise.all(batch);
  iteration += batch.length;
} while (only === undefined && failures < MAX_FAILURES && !isEnough());

if (only === undefined) {
  console.table(Object.fromEntries(tallies));
  console.log('Accepted, by algorithm:', Object.fromEntries(signed));
  console.log('\nDisagreements, where gatehouse is stricter or decides otherwise:');
  console.log('  count | example iteration | target: reason | accepted by | why');
  for (const [name, { count, example }] of [...classes].sort(
    ([, one], [, other]) => other.count - one.count,
  )) {
    console.log(`  ${count} | ${example} | ${name}`);
  }
  for (const [target, { inputs, accepted }] of tallies) {
    if (accepted > 0 || inputs < ENOUGH) continue;
    failures += 1;
    console.error(`${target}: nothing was accepted, so nothing was compared`);
  }
  for (const [kind, number] of signed) {
    const [target = ''] = kind.split(' ');
    if (number > 0 || tallies.get(target)!.inputs < ENOUGH) continue;

    failures += 1;
    console.error(`no ${kind} was accepted, so none was compared`);
  }
}

if (only === undefined) {
  const { FUZZ_BODIES = '100000', FUZZ_CONNECTION = '0' } = process.env;
  const { faults, ...figures } = await fuzzBodies(seed, Number(FUZZ_BODIES), Number(FUZZ_CONNECTION));
  console.log('\nBodies:', figures);
  for (const fault of faults.slice(0, MAX_FAILURES)) console.error(fault);
  failures += faults.length;
}

console.log(`\n${only === undefined ? iteration : 1} inputs, ${failures} failures, FUZZ_SEED=${seed}`);
process.exitCode = failures === 0 ? 0 : 1;

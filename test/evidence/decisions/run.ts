/* Runs the recipes of docs/decisions.md as they stand there: Cedar itself, and for OPA, OpenFGA and AuthZEN a
   server on loopback that checks each message against the documented interface. It is an emulation: none of
   the three engines runs here.

   Shows: the [policy engine recipes](docs/decisions.md#policy-engines), with Cedar, and with emulations of OPA,
   OpenFGA and AuthZEN.
   Takes: 5 s.
   Needs: packages. */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as cedar from '@cedar-policy/cedar-wasm/nodejs';
import { decision, type DecisionFunction } from '../../../src/decisions.ts';
import { get, needs } from '../../../src/gatehouse.ts';
import { read } from '../../docs/pages.ts';
import { tokenWith } from '../../support/caller.ts';
import { startRoutes } from '../../support/routes.ts';

const POLICY = 'permit(principal == User::"anna", action, resource == Account::"1");';

/** A message that an engine was sent, and what the emulation says to it. */
interface Message {
  readonly target: string;
  readonly body: any;
}

const STORE = '01ARZ3NDEKTSV4RRFFQ69G5FAV';

/** What each interface documents: where, which members, and the answer. */
const INTERFACES: Readonly<Record<string, (message: Message) => object>> = {
  askOpa({ target, body: { input, ...others } }) {
    assert.equal(target, '/v1/data/payments/allow');
    assert.deepEqual([others, Object.keys(input)], [{}, ['subject', 'issuer', 'scopes', 'method', 'path']]);
    return { result: input.subject === 'anna' && input.path === '/pay/1' };
  },

  askOpenFga({ target, body: { tuple_key: key, ...others } }) {
    assert.equal(target, `/stores/${STORE}/check`);
    assert.deepEqual([others, Object.keys(key)], [{}, ['user', 'relation', 'object']]);
    const isKnown = key.user === 'user:anna' && key.relation === 'payer' && key.object === 'account:1';
    return { allowed: isKnown, resolution: '' };
  },

  askAuthZen({ target, body: { subject, action, resource } }) {
    assert.equal(target, '/access/v1/evaluation');
    assert.deepEqual([subject.type, action, resource.type], ['user', { name: 'GET' }, 'account']);
    return { decision: subject.id === 'anna' && resource.id === '1' };
  },
};

/** Recipes, by the names of their functions. */
const RECIPES = new Map(
  [...read('docs/decisions.md').matchAll(/^(?:async )?function (ask\w+)\([^]*?^\}$/gm)].map(
    ([text, name = '']) => [name, text] as const,
  ),
);

assert.deepEqual([...RECIPES.keys()], ['askOpa', 'askCedar', 'askOpenFga', 'askAuthZen']);

/** The function as it stands on the page, with another address for its engine. */
function recipeOf(name: string, origin: string): DecisionFunction {
  const text = RECIPES.get(name) ?? '';
  assert.ok(text.split('\n').length <= 12, `${name}: ten lines within its braces`);
  const here = text.replace(/https?:\/\/[^/']+/, origin).replace(/`https?:\/\/[^/]+/, `\`${origin}`);
  const make = new Function('STORE', 'POLICY', 'isAuthorized', `return ${here}`);
  return make(STORE, POLICY, cedar.isAuthorized);
}

async function textOf(request: IncomingMessage) {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}

type Mood = 'well' | 'ignorant' | 'failing' | 'slow';

/** An engine on loopback. `mood` says how it does. */
async function startEngine(name: string) {
  const state: { mood: Mood; lost: Promise<void> | undefined } = { mood: 'well', lost: undefined };
  const reply = INTERFACES[name];

  const server = createServer(async (request, response) => {
    state.lost = new Promise((resolve) => {
      response.on('close', resolve);
    });
    assert.equal(request.method, 'POST');
    assert.equal(request.headers['content-type'], 'application/json');
    const body = JSON.parse(await textOf(request));
    const answer = reply?.({ target: request.url ?? '', body });
    if (state.mood === 'slow') return;

    response.statusCode = state.mood === 'failing' ? 500 : 200;
    response.end(JSON.stringify(state.mood === 'ignorant' ? {} : answer));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return { state, server, origin: `http://127.0.0.1:${port}` };
}

for (const name of RECIPES.keys()) {
  const { state, server, origin } = await startEngine(name);
  const access = needs(decision('may pay from this account', recipeOf(name, origin)));
  const app = await startRoutes({ routes: [get('/pay/{account}', access, () => ({ paid: true }))] });

  const statusFor = async (sub: string, account: string) =>
    (await app.ask(`/pay/${account}`, { token: tokenWith({ sub, scope: 'pay' }) })).status;

  const statuses = [await statusFor('anna', '1'), await statusFor('anna', '2'), await statusFor('bert', '1')];
  assert.deepEqual(statuses, [200, 403, 403], name);

  const isRemote = INTERFACES[name] !== undefined;
  for (const mood of isRemote ? (['ignorant', 'failing'] as const) : []) {
    state.mood = mood;
    assert.equal(await statusFor('anna', '1'), 503, `${name}: ${mood}`);
  }
  await app.stop();

  if (isRemote) {
    state.mood = 'slow';
    const impatient = needs(decision('may pay', recipeOf(name, origin), { timeoutSeconds: 0.05 }));
    const { clock } = await import('../../support/caller.ts');
    const late = await startRoutes({ routes: [get('/pay/{account}', impatient, () => ({}))] });
    state.lost = undefined;
    const response = late.ask('/pay/1', { token: tokenWith({ sub: 'anna' }) });
    while (state.lost === undefined) await new Promise(setImmediate);
    clock.advance(50);
    assert.equal((await response).status, 503, `${name}: slow`);
    // `signal` has ended the request to the engine.
    await state.lost;
    await late.stop();
  }
  server.closeAllConnections();
  server.close();
  console.log(`${name}: allows, refuses${isRemote ? ', and is 503 when it does not decide' : ''}`);
}

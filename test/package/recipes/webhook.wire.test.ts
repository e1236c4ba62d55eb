/* The recipe for webhooks: only what the provider signed just now has an effect, and only once. */
import assert from 'node:assert/strict';
import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { runProcess } from '../../support/process.ts';
import { fileOf, outcomeOf, startRecipe, type Recipe } from './run-recipe.ts';

const KEY = randomBytes(32);
const SECRET = `whsec_${KEY.toString('base64')}`;

interface Delivery {
  readonly id: string;
  readonly sent: number | string;
  readonly body: string | Buffer;
  readonly key: Buffer;
  readonly type: string;
}

const eventOf = (payment: string) => JSON.stringify({ type: 'payment.paid', data: { id: payment } });

const nowSeconds = () => Math.floor(Date.now() / 1000);

describe('the recipe webhook', () => {
  let recipe: Recipe;

  before(async () => {
    recipe = await startRecipe('webhook', { WEBHOOK_SECRET: SECRET });
  });

  after(() => recipe.stop());

  const deliver = (change: Partial<Delivery>, fields: Record<string, string> = {}) => {
    const id = randomUUID();
    const usual = { id, sent: nowSeconds(), body: eventOf(id), key: KEY, type: 'application/json' };
    const { body, ...delivery } = { ...usual, ...change };
    const signed = Buffer.concat([Buffer.from(`${delivery.id}.${delivery.sent}.`), Buffer.from(body)]);
    const signature = createHmac('sha256', delivery.key).update(signed).digest('base64');
    const headers = {
      'Content-Type': delivery.type,
      'webhook-id': delivery.id,
      'webhook-timestamp': String(delivery.sent),
      'webhook-signature': `v1,${signature}`,
      ...fields,
    };
    return fetch(`${recipe.origin}/hooks/payments`, {
      method: 'POST',
      headers,
      body: new Uint8Array(Buffer.from(body)),
    });
  };

  const payment = async (id: string) => {
    const response = await recipe.send('GET', `/api/payments/${id}`, 'read:payments');
    return response.status === 200 ? response.json() : response.status;
  };

  const paid = (id: string) => ({ id, status: 'paid', events: 1 });

  test('takes a signed event, without a token and whatever stands in Authorization', async () => {
    assert.equal((await deliver({ body: eventOf('p1') })).status, 204);
    assert.equal((await deliver({ body: eventOf('p2') }, { Authorization: 'Basic eA==' })).status, 204);
    assert.deepEqual([await payment('p1'), await payment('p2')], [paid('p1'), paid('p2')]);
  });

  test('lets an event take effect once, however often it comes', async () => {
    const again = { id: 'evt_1', body: eventOf('p3') };
    const responses = await Promise.all([
      deliver(again),
      deliver(again),
      deliver({ ...again, sent: nowSeconds() - 60 }),
    ]);
    assert.deepEqual(
      responses.map(({ status }) => status),
      [204, 204, 204],
    );
    assert.deepEqual(await payment('p3'), paid('p3'));
  });

  test('takes an event with several signatures, one of which is valid', async () => {
    const id = 'evt_2';
    const sent = nowSeconds();
    const body = eventOf('p4');
    const good = createHmac('sha256', KEY).update(`${id}.${sent}.${body}`).digest('base64');
    const several = { 'webhook-signature': `v1,${good.slice(4)} v1a,${good} v1,${good}` };
    assert.equal((await deliver({ id, sent, body }, several)).status, 204);
    assert.deepEqual(await payment('p4'), paid('p4'));
  });

  test('refuses with one response what was not signed with the secret, over these bytes, within the window', async () => {
    const { Authorization: _, ...none } = recipe.bearer('');
    const body = eventOf('p5');
    const forged = createHmac('sha256', 'x').update('y').digest('base64');
    const refused: Readonly<Record<string, Promise<Response>>> = {
      'another key': deliver({ body, key: randomBytes(32) }),
      'other bytes': deliver({ body, sent: nowSeconds() }, { 'webhook-id': 'evt_other' }),
      'another time': deliver({ body }, { 'webhook-timestamp': String(nowSeconds() - 1) }),
      'too old': deliver({ body, sent: nowSeconds() - 302 }),
      'of the future': deliver({ body, sent: nowSeconds() + 302 }),
      'a time in other digits': deliver({ body, sent: `${nowSeconds()}.0` }),
      'a time without end': deliver({ body, sent: '9'.repeat(13) }),
      'no ID': deliver({ body, id: '' }),
      'no signature': deliver({ body }, { 'webhook-signature': '' }),
      'a forged one': deliver({ body }, { 'webhook-signature': `v1,${forged}` }),
      'a short one': deliver({ body }, { 'webhook-signature': 'v1,AAAA' }),
      'one without version': deliver({ body }, { 'webhook-signature': forged }),
      'no fields': fetch(`${recipe.origin}/hooks/payments`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...none },
        body,
      }),
    };
    const texts = new Set<string>();
    for (const [name, response] of Object.entries(refused)) {
      assert.equal((await response).status, 400, name);
      texts.add(await (await response).text());
    }
    assert.equal(texts.size, 1);
    assert.equal(await payment('p5'), 404);
  });

  test('refuses signed events without form, of another type, and too long ones', async () => {
    for (const body of [
      '',
      '{',
      'null',
      '[]',
      '{"type":"payment.paid"}',
      '{"type":1,"data":{"id":"p"}}',
      '{"type":"x","data":{}}',
    ]) {
      assert.deepEqual(await outcomeOf(deliver({ body })), [400, 'invalid_body'], body);
    }
    assert.deepEqual(await outcomeOf(deliver({ type: 'text/plain' })), [415, 'unsupported_media_type']);
    const long = JSON.stringify({ type: 'x', data: { id: 'x'.repeat(65_536) } });
    assert.deepEqual(await outcomeOf(deliver({ body: long })), [413, 'content_too_large']);
    assert.equal((await deliver({ body: '{"type":"unknown","data":{"id":"p"}}' })).status, 204);
  });

  test('shows payments to those who may see them, and to no others', async () => {
    assert.equal((await recipe.send('GET', '/api/payments/p1', '')).status, 403);
    assert.equal((await fetch(`${recipe.origin}/api/payments/p1`)).status, 401);
  });

  test('does not start without a secret of 24 bytes', async (t) => {
    for (const environment of [{}, { WEBHOOK_SECRET: 'whsec_c2hvcnQ=' }]) {
      const { exited, errors } = await runProcess(t, {
        program: [process.execPath, fileOf('webhook')],
        environment,
      });
      assert.equal(await exited, 1);
      assert.match(errors(), /WEBHOOK_SECRET must be/);
    }
  });
});

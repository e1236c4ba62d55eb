/* What a gate makes of the options of `introspection`: where it asks, as which client, and with which key
   (docs/introspection.md). */
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test, type TestContext } from 'node:test';
import { authenticated, createGate, type GateOptions } from '../../../src/gate.ts';
import { introspection, type IntrospectionOptions } from '../../../src/introspection.ts';
import { throughProxy } from '../../../src/proxy.ts';
import { startProxy } from '../../idp/proxy.ts';
import { json, startEndpoint, type FakeEndpoint, type Question } from './endpoint-fixture.ts';

const KEY_FILE = fileURLToPath(new URL('../../idp/tls/client-key.pem', import.meta.url));

interface Plan {
  readonly part: Omit<IntrospectionOptions, 'tokens'>;
  readonly options?: Partial<GateOptions>;
}

/** The one question of a gate about a token that is active. */
async function questionOf(
  t: TestContext,
  endpoint: FakeEndpoint,
  { part, options }: Plan,
): Promise<Question> {
  endpoint.say = json({ active: true, sub: 'ada', aud: 'orders-api', exp: Date.now() / 1000 + 300 });
  const gate = createGate({
    domain: endpoint.domain,
    audience: 'orders-api',
    introspection: introspection({ tokens: ['opaque'], ...part }),
    fetchKeys: async () => ({ keys: [] }),
    log: () => {},
    ...options,
  });
  t.after(gate.close);
  const rawHeaders = ['Host', 'api.test', 'Authorization', 'Bearer opaque-token'];
  const verdict = await gate.check({ method: 'GET', url: '/', rawHeaders }, authenticated);
  assert.equal('caller' in verdict && verdict.caller?.subject, 'ada');
  const [question = assert.fail('nothing was asked'), ...more] = endpoint.questions;
  assert.deepEqual(more, []);
  return question;
}

test('asks at the address that its options name, as that client, with that secret [§22]', async (t) => {
  const endpoint = await startEndpoint(t);
  const uri = `${endpoint.issuer}named`;
  const question = await questionOf(t, endpoint, { part: { uri, clientId: 'a b', clientSecret: 'p:' } });
  assert.deepEqual([question.path, endpoint.fetches], ['/named', 0]);
  const [, encoded = ''] = question.headers.authorization?.split(' ') ?? [];
  assert.equal(Buffer.from(encoded, 'base64').toString(), 'a+b:p%3A');
});

test('signs an assertion with the key of its file, under its key id, for its issuer [§22, RFC 7523 §3]', async (t) => {
  const endpoint = await startEndpoint(t);
  const { form, headers } = await questionOf(t, endpoint, {
    part: { clientId: 'a-client', keyFile: KEY_FILE, keyId: 'key-1' },
  });
  assert.equal(headers.authorization, undefined);

  const [head = '', payload = '', signature = ''] = form.get('client_assertion')?.split('.') ?? [];
  const parse = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
  const { alg, kid } = parse(head);
  const { iss, sub, aud } = parse(payload);
  assert.deepEqual([alg, kid, iss, sub, aud], ['ES256', 'key-1', 'a-client', 'a-client', endpoint.issuer]);
  const key = { key: createPublicKey(readFileSync(KEY_FILE)), dsaEncoding: 'ieee-p1363' } as const;
  assert.ok(verify('sha256', Buffer.from(`${head}.${payload}`), key, Buffer.from(signature, 'base64url')));
});

test('asks through the proxy of the gate [§22, §7]', async (t) => {
  const endpoint = await startEndpoint(t);
  const proxy = await startProxy();
  t.after(() => proxy.stop());
  await questionOf(t, endpoint, {
    part: { uri: endpoint.uri, clientId: 'a-client', clientSecret: 'x' },
    options: { connect: throughProxy(`http://localhost:${proxy.port}`) },
  });
  assert.deepEqual(
    proxy.asked.map(({ target }) => target),
    [endpoint.domain],
  );
});

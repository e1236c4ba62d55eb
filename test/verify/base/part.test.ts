/* Parts: whom they serve, what they show, and that nothing passes for one. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { createGate, createService, get, open, type GateOptions } from '../../../src/gatehouse.ts';
import { Part } from '../../../src/verify/base/option.ts';
import { clientCertificates } from '../../../src/certificates.ts';
import { cors } from '../../../src/cors.ts';
import { keyAccess } from '../../../src/key-access.ts';
import { introspection } from '../../../src/introspection.ts';
import { jsonLog } from '../../../src/log.ts';
import { CLUSTER_AUTHORITY } from '../../options/key-access-fixture.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { throughProxy } from '../../../src/proxy.ts';
import { redisReplayStore } from '../../../src/redis.ts';
import { resourceMetadata } from '../../../src/resource-metadata.ts';
import { createRevocations } from '../../../src/revocations.ts';
import { tenants } from '../../../src/tenants.ts';
import { makeIssuer } from '../../support/issuer.ts';

const { options: TEST } = makeIssuer();

/** The option of each part, and how to make one. */
const PARTS = {
  log: () => jsonLog({ level: 'silent' }),
  replayStore: () => redisReplayStore('redis://user:secret-word@127.0.0.1:1'),
  connect: () => throughProxy('http://user:secret-word@127.0.0.1:1'),
  clientCertificates: () =>
    clientCertificates({ source: 'pem', field: 'Secret-Word', proxies: ['192.0.2.44'] }),
  revocations: () => createRevocations({ store: 'redis://user:secret-word@127.0.0.1:1' }),
  keyAccess: () => keyAccess({ caFile: CLUSTER_AUTHORITY }),
  tenants: () => tenants({ issuer: 'https://secret-word.test/{tenant}/', list: ['a'] }),
  introspection: () =>
    introspection({ tokens: ['jwt'], clientId: 'secret-word', clientSecret: 'secret-word' }),
  metadata: () => resourceMetadata({ url: 'https://api.test/secret-word' }),
  cors: () => cors({ origins: ['https://secret-word.test'] }),
  metrics: () => createMetrics({ port: 4_444, host: 'secret-word' }),
};

for (const [name, make] of Object.entries(PARTS)) {
  test(`the part ${name} shows nothing of what it was made of [§11]`, () => {
    const part = make();
    const shown = inspect(part, { depth: 9, showHidden: true }) + JSON.stringify(part) + String(part);
    assert.doesNotMatch(shown, /secret-word|4444|silent|192/i);
    assert.equal(Object.getPrototypeOf(part).constructor, Object);
  });

  test(`nothing but its own maker makes the part ${name} [§11, J15]`, () => {
    const part = make();
    const alike = [
      { ...part },
      Object.create(part),
      Object.create(Object.getPrototypeOf(part)),
      new Proxy(part, {}),
      structuredClone({}),
      Part.make(name === 'cors' ? 'log' : 'cors', {}),
    ];
    for (const value of alike) {
      assert.throws(() => createGate({ ...TEST, [name]: value } as never), {
        name: 'TypeError',
        message: new RegExp(`^${name}: must be (?:a function, or )?a part that `),
      });
    }
  });
}

const served = { routes: [get('/a', open, () => ({}))] };

const SERVING_ONE = [
  'connect',
  'clientCertificates',
  'keyAccess',
  'tenants',
  'introspection',
  'metadata',
  'cors',
] as const;

for (const name of [...SERVING_ONE, 'metrics'] as const) {
  test(`the part ${name} serves one service, and a second use throws [§11]`, async () => {
    const part = PARTS[name]();
    const service = createService(served, { ...TEST, [name]: part });
    const message = `${name}: already belongs to a gate or service; make another`;
    assert.throws(() => createService(served, { ...TEST, [name]: part }), { name: 'TypeError', message });
    if (name !== 'metrics') {
      assert.throws(() => createGate({ ...TEST, [name]: part }), { name: 'TypeError', message });
    }
    // Closing frees none.
    await service.stop();
    assert.throws(() => createService(served, { ...TEST, [name]: part }), { name: 'TypeError', message });
  });

  test(`a creation that throws uses no part ${name} [§11]`, async () => {
    const part = PARTS[name]();
    assert.throws(() => createService(served, { ...TEST, [name]: part, port: -1 }));
    assert.throws(() => createService({ routes: ['x'] } as never, { ...TEST, [name]: part }));
    assert.throws(() => createGate({ ...TEST, [name]: part, domain: '' }));
    await createService(served, { ...TEST, [name]: part }).stop();
  });
}

for (const name of SERVING_ONE) {
  test(`the part ${name} serves one gate, and a second use throws [§11]`, () => {
    const part = PARTS[name]();
    createGate({ ...TEST, [name]: part }).close();
    const message = `${name}: already belongs to a gate or service; make another`;
    assert.throws(() => createGate({ ...TEST, [name]: part }), { name: 'TypeError', message });
  });
}

for (const [what, create] of [
  ['gate', (options: GateOptions) => createGate(options).close()],
  ['service', (options: GateOptions) => createService(served, options)],
] as const) {
  test(`a part of a further issuer serves one ${what}, and a second use throws [§11]`, () => {
    const partner = { domain: 'partner.test', audience: 'orders', keyAccess: PARTS.keyAccess() };
    const options = { ...TEST, issuers: { partner } };
    create(options);
    assert.throws(
      () => create(options),
      /^TypeError: .*keyAccess: already belongs to a gate or service; make another$/,
    );
  });
}

for (const [name, part] of [
  ['replayStore', PARTS.replayStore()],
  ['revocations', PARTS.revocations()],
  ['log', PARTS.log()],
  ['metrics', createMetrics()],
] as const) {
  test(`the part ${name} serves any number [§11]`, () => {
    for (const gate of [1, 2].map(() => createGate({ ...TEST, [name]: part }))) gate.close();
  });
}

test('all parts of all owners are taken from their use on, and no other', () => {
  const [first, second, other] = ['a', 'b', 'c'].map((option) => Part.make(option, {}));
  Part.use({ first }, { second });
  const taken = [first, second, other, {}].map(Part.isTaken);
  assert.deepEqual(taken, [true, true, false, false]);
});

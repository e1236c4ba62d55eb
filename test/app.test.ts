import { strict as assert } from 'node:assert';
import { after, before, test } from 'node:test';
import { startProvider, type Provider } from './idp/provider.ts';
import { startProcess, startService, providerSettings } from './support/service.ts';

let provider: Provider;
before(async () => { provider = await startProvider(); });
after(() => provider.stop());

test('answers a public row without credentials', async () => {
  const service = await startService({ provider });
  assert.equal((await service.ask('/api/public')).status, 200);
  assert.equal((await service.ask('/api/private', { token: provider.issue() })).status, 200);
  await service.stop();
});

test('works as a process', async () => {
  const service = await startProcess({ environment: providerSettings(provider) });
  assert.equal((await service.ask('/api/public')).status, 200);
  service.child.kill('SIGTERM');
  assert.equal(await service.exited, 0);
  await service.stop();
});

/* The port for metrics differs from that of the service, unless both are picked. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load, onlyProblem, REQUIRED } from './every-setting.ts';

for (const environment of [
  { PORT: '9464', METRICS_PORT: '9464' },
  { PORT: '1', METRICS_PORT: '1' },
  { METRICS_PORT: '3001' },
  { PROFILE: 'A', METRICS_PORT: '8080' },
]) {
  test(`refuses the port of the service for metrics: ${JSON.stringify(environment)}`, () => {
    const problem = onlyProblem({ environment: { ...REQUIRED, ...environment } });
    const fault = 'is the port of the service itself; choose another';
    assert.equal(problem, `METRICS_PORT (environment): ${fault}`);
  });
}

test('accepts another port for metrics, or 0 for both', () => {
  for (const environment of [
    { PORT: '0', METRICS_PORT: '0' },
    { PROFILE: 'A', METRICS_PORT: '3001' },
  ]) {
    const { settings } = load({ environment: { ...REQUIRED, ...environment } });
    assert.equal(settings.metricsPort, Number(environment.METRICS_PORT));
  }
});

/* The options of a service: their defaults, and those that do not fit each other. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { clientCertificates } from '../../src/certificates.ts';
import { makeMetrics } from '../../src/options/metrics/metrics-listener.ts';
import { readServiceOptions, type ServiceOptions } from '../../src/service/options.ts';

const read = (more: Partial<ServiceOptions> = {}) =>
  readServiceOptions({ domain: 'idp.test', audience: 'https://api.test', ...more });

test('has the defaults that docs/settings.md says', () => {
  const values = read();
  const { port, bodyLimitBytes, handlerTimeoutSeconds, requestTimeoutSeconds, shutdownDelaySeconds } = values;
  assert.deepEqual(
    [port, bodyLimitBytes, handlerTimeoutSeconds, requestTimeoutSeconds, shutdownDelaySeconds],
    [3001, 102_400, 30, 15, 0],
  );
  const { dpopMode, dpopIatOffsetSeconds, dpopIatLeewaySeconds, errorDetail, trustProxy } = values;
  assert.deepEqual(
    [dpopMode, dpopIatOffsetSeconds, dpopIatLeewaySeconds, errorDetail, trustProxy],
    ['ALLOWED', 300, 30, false, false],
  );
  assert.deepEqual([values.tokenCacheEntries, values.clockToleranceSeconds], [10_000, 0]);
});

test('refuses certificates of TLS, which a service does not offer, and takes those of a field', () => {
  assert.throws(() => read({ clientCertificates: clientCertificates({ source: 'tls' }) }), {
    name: 'TypeError',
    message:
      'clientCertificates: source: must not be tls, since a service offers no TLS; choose the form that your proxy writes, such as rfc9440',
  });
  assert.ok(read({ clientCertificates: clientCertificates({ source: 'pem', proxies: 'any' }) }));
});

test('refuses metrics on its own port, unless any free one will do', () => {
  for (const [own, ofMetrics, isGood] of [
    [81, 81, false],
    [1, 1, false],
    [81, 82, true],
    [81, undefined, true],
    [0, 0, true],
  ] as const) {
    const options = { port: own, metrics: makeMetrics(ofMetrics, undefined) };
    if (isGood) assert.equal(read(options).port, own);
    else {
      assert.throws(() => read(options), {
        name: 'TypeError',
        message: 'metrics: port: is the port of the service itself; choose another',
      });
    }
  }
});

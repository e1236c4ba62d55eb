/* nginx, Caddy and HAProxy with the configurations of the documents, in front of a service and of forward-auth: with the
   client's certificate, with another, with none, and with fields that a client forges. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { clientCertificates } from '../../src/certificates.ts';
import { authenticated, createService, get, upstream } from '../../src/gatehouse.ts';
import { REFUSALS } from '../../src/verify/base/refusal.ts';
import { freePort } from '../support/free-port.ts';
import { withReason } from '../support/skipped.ts';
import { client, FIELDS, otherClient, written, type ClientCertificate } from './certificates-fixture.ts';
import { askOverTls, CADDY, HAPROXY, NGINX, type Proxy } from './certificates-proxies.ts';
import { issuer, startPolicy } from './forward-auth-fixture.ts';
import { startApi, type Seen } from './forward-auth-proxies.ts';

const partFor = ({ source }: Proxy) => clientCertificates({ source, proxies: ['127.0.0.1'] });

const bound = () => issuer.bearer({ cnf: { 'x5t#S256': client.thumbprint } });

const sentences = REFUSALS.invalid_token;

interface Running {
  readonly port: number;
  /** What the server behind got. */
  readonly seen: readonly Seen[];
  readonly stop: () => Promise<void>;
}

async function startService(proxy: Proxy): Promise<Running> {
  const routes = [get('/me', authenticated, ({ headers }) => ({ names: Object.keys(headers) }))];
  const gatehouse = await freePort();
  const options = { ...issuer.options, host: '127.0.0.1', port: gatehouse };
  const service = createService({ routes }, { ...options, clientCertificates: partFor(proxy) });
  await service.listen();
  const running = await proxy.start({ gatehouse });

  return {
    port: running.port,
    seen: [],
    async stop() {
      await running.stop();
      await service.stop();
    },
  };
}

async function startForwardAuth(proxy: Proxy): Promise<Running> {
  const routes = [get('/me', authenticated, upstream)];
  const policy = await startPolicy({ routes }, { clientCertificates: partFor(proxy) });
  const api = await startApi();
  const running = await proxy.start({ gatehouse: policy.port, api: api.port });

  return {
    port: running.port,
    seen: api.seen,
    async stop() {
      await running.stop();
      await api.stop();
      await policy.stop();
    },
  };
}

const FRONTS = [
  ['a service', startService, [NGINX, CADDY, HAPROXY]],
  ['forward-auth', startForwardAuth, [NGINX, CADDY]],
] as const;

for (const [what, start, proxies] of FRONTS) {
  for (const proxy of proxies) {
    const { name, source, absent, missing } = proxy;
    const field = FIELDS[source];

    describe(
      withReason(`${what} behind ${name}`, missing),
      { skip: missing !== undefined, timeout: 120_000 },
      () => {
        let running: Running;

        before(async () => {
          running = await start(proxy);
        });

        after(() => running?.stop());

        const ask = (presents: ClientCertificate | undefined, headers: object = {}) =>
          askOverTls({ port: running.port, presents, headers: { ...bound(), ...headers } });

        test('a bound token passes with its certificate, and with no other [RFC 8705 §3, J2]', async () => {
          assert.equal((await ask(client)).status, 200);
          const other = await ask(otherClient);
          assert.deepEqual([other.status, other.description], [401, sentences['certificate-mismatch']]);
          const none = await ask(undefined);
          assert.deepEqual([none.status, none.description], [401, sentences[absent]]);
        });

        test('a token that is bound to nothing passes with and without a certificate', async () => {
          for (const presents of [client, undefined]) {
            const { status } = await askOverTls({ port: running.port, presents, headers: issuer.bearer() });
            assert.equal(status, 200);
          }
        });

        const good = written(source, client.der);
        const forged: readonly Readonly<Record<string, string | readonly string[]>>[] = [
          { [field]: good },
          { [field.toLowerCase()]: [good, good] },
          { [field.replaceAll('-', '_')]: good },
          { [field.replace('-', '_')]: good },
          { [field]: good, [field.replaceAll('-', '_')]: good },
          { [field]: '' },
          { [field]: good, Connection: `close, ${field}` },
        ];

        test('a client that sends the field itself, in any spelling, gains nothing [J1]', async () => {
          for (const headers of forged) {
            const shown = JSON.stringify(headers).slice(0, 80);
            for (const presents of [undefined, otherClient]) {
              const { status } = await ask(presents, headers);
              assert.ok(status === 401 || status === 400, `${shown}: ${status}`);
            }
          }
        });

        test('a client with its certificate is not harmed by a field that it sends itself', async () => {
          for (const headers of forged.slice(0, 6)) {
            const { status } = await ask(client, { [field]: 'forged', ...headers });
            assert.equal(status, 200, JSON.stringify(headers).slice(0, 80));
          }
        });

        test('the server behind gets no certificate', async () => {
          await ask(client, forged[4]);
          const named = running.seen.flatMap(({ fields }) => fields.filter(([each]) => /cert/i.test(each)));
          assert.deepEqual(
            named.filter(([, value]) => value !== ''),
            [],
          );
        });
      },
    );
  }
}

/* Runs the https servers of docs/certificates.md, with exactly its lines: node:https, and the real Express and Fastify.
   Each gets a bound token with its certificate, with another, with none, and with a field that the client forges; and a
   session that is resumed without a certificate, under TLS 1.2 and 1.3. The compiler takes the lines first.

   Shows: the `https` servers in [docs/certificates.md](docs/certificates.md), with valid, wrong, missing and
   forged certificates.
   Takes: 15 s.
   Needs: packages. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { fileURLToPath } from 'node:url';
import { connect } from 'node:tls';
import { REFUSALS } from '../../../src/verify/base/refusal.ts';
import { samplesUnder } from '../../docs/pages.ts';
import {
  client,
  FIELDS,
  otherClient,
  SOURCES,
  tlsFile,
  written,
  type ClientCertificate,
} from '../../options/certificates-fixture.ts';
import { openWorkshop } from '../servers/workshop.ts';

const PAGE = 'docs/certificates.md';
const GATES = 'docs/in-front-of-your-server.md';

const fileOf = (name: string) => fileURLToPath(new URL(`../../idp/tls/${name}.pem`, import.meta.url));

const [GATE = ''] = samplesUnder(PAGE, 'Where certificates come from', 'ts');
const [TLS = '', OF_NODE = ''] = samplesUnder(PAGE, 'node:https', 'ts');

const ofGatePage = (heading: string) => samplesUnder(GATES, heading, 'ts')[0] ?? '';

/** The server of the page, and those that it says take the samples of docs/in-front-of-your-server.md. */
const SERVERS: Readonly<Record<string, string>> = {
  'node:https': OF_NODE.replace(/^import \{ needs.*$/m, ''),
  Express: `
    import { createServer } from 'node:https';
    import express, { type Response } from 'express';
    const app = express();
    const listOrders = (_: unknown, response: Response) => void response.send('orders');
    const addOrder = listOrders;
    ${ofGatePage('Express 4 and 5')}
    createServer(tls, app).listen(8443);`,
  Fastify: `
    import Fastify from 'fastify';
    const fastify = Fastify({ https: tls });
    const listOrders = async () => 'orders';
    const addOrder = listOrders;
    ${ofGatePage('Fastify 5.3')}
    await fastify.listen({ port: 8443 });`,
};

/** The lines of the page for a gate with the source `tls`, with the options and the files of the tests. */
function programOf(heading: string): string {
  const text = `${GATE}${TLS}${SERVERS[heading]}`
    .replace('import { createGate }', 'import { createGate, needs, scope, type Access, type Caller }')
    .replace(/ {2}domain: .*\n {2}audience: .*\n/, '  ...options,\n')
    .replace('/etc/tls/api.example.com.key', fileOf('provider-key'))
    .replace('/etc/tls/api.example.com.pem', fileOf('provider'))
    .replace(/\.listen\(8443\)/, '.listen(0, sayPort)')
    .replace('listen({ port: 8443 })', 'listen({ port: 0 })');
  const after = heading === 'Fastify' ? 'sayPort.call(fastify.server);' : '';
  const before = `
    import type { AddressInfo } from 'node:net';
    const options = {
      ...JSON.parse(process.env.GATE_OPTIONS ?? ''),
      fetchKeys: async () => (await fetch(process.env.KEYS_URL ?? '')).json(),
    };
    function sayPort(this: { address(): unknown }) {
      console.log('listening ' + (this.address() as AddressInfo).port);
    }\n`;
  return `${before}${text}${after}\n`;
}

interface Call {
  readonly port: number;
  readonly token: string;
  readonly presents?: ClientCertificate | undefined;
  readonly fields?: Readonly<Record<string, string>>;
  readonly session?: Buffer | undefined;
  readonly version?: 'TLSv1.2' | 'TLSv1.3';
}

/** The status, the reason of a refusal, and the session that the server gave. */
async function call({ port, token, presents, fields, session, version = 'TLSv1.3' }: Call) {
  const own = presents && { cert: presents.pem, key: presents.key };
  const versions = { minVersion: version, maxVersion: version };
  const socket = connect({ port, host: '127.0.0.1', ca: tlsFile('authority'), session, ...versions, ...own });
  const sessions: Buffer[] = [];
  socket.on('session', (given: Buffer) => sessions.push(given));
  const headers = { authorization: `Bearer ${token}`, ...fields };
  const asked = request({ createConnection: () => socket, headers, path: '/api/orders' });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  const isResumed = socket.isSessionReused();
  socket.destroy();
  const challenge = response.headers['www-authenticate'] ?? '';
  const [, sentence] = /error_description="(.*?)"/.exec(challenge) ?? [];
  const [reason] = Object.entries(REFUSALS.invalid_token).find(([, text]) => text === sentence) ?? [];
  return { status: response.statusCode, reason, isResumed, session: sessions.at(-1) };
}

const workshop = await openWorkshop();
const HEADINGS = Object.keys(SERVERS);

const nameOf = (heading: string) => heading.replace(/\W/g, '-').toLowerCase();

async function check(port: number) {
  const scope = 'read:orders';
  const plain = workshop.issuer.token({ scope });
  const token = workshop.issuer.token({ scope, cnf: { 'x5t#S256': client.thumbprint } });
  const forged = Object.fromEntries(SOURCES.map((source) => [FIELDS[source], written(source, client.der)]));

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const first = await call({ port, token, version, presents: client });
    assert.equal(first.status, 200);
    assert.equal((await call({ port, token: plain, version })).status, 200);

    const none = await call({ port, token, version });
    assert.deepEqual([none.status, none.reason], [401, 'certificate-missing']);
    const ofField = await call({ port, token, version, fields: forged });
    assert.deepEqual([ofField.status, ofField.reason], [401, 'certificate-missing']);
    const other = await call({ port, token, version, presents: otherClient, fields: forged });
    assert.deepEqual([other.status, other.reason], [401, 'certificate-mismatch']);

    const resumed = await call({ port, token, version, session: first.session });
    assert.deepEqual([resumed.status, resumed.isResumed], [200, true]);
    const ofOther = await call({ port, token, version, presents: client, session: other.session });
    assert.deepEqual([ofOther.status, ofOther.reason], [401, 'certificate-mismatch']);
  }
}

try {
  workshop.compile(Object.fromEntries(HEADINGS.map((heading) => [nameOf(heading), programOf(heading)])));
  for (const heading of HEADINGS) {
    const { url, stop, errors } = await workshop.run(nameOf(heading));
    await check(Number(new URL(url).port)).finally(stop);
    assert.equal(errors(), '');
    console.log(`${heading}: as expected`);
  }
} finally {
  await workshop.close();
}

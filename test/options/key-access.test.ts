/* Which files `keyAccess` accepts, what it says of the others, and what it shows. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { inspect } from 'node:util';
import { createGate } from '../../src/gate.ts';
import { keyAccess } from '../../src/key-access.ts';
import { makeIssuer } from '../support/issuer.ts';
import { Part } from '../../src/verify/base/option.ts';
import { FetchError } from '../../src/verify/keys/jwks.ts';
import { withReason } from '../support/skipped.ts';
import { CLUSTER_AUTHORITY, directoryFor, TOKEN, USUAL_AUTHORITY } from './key-access-fixture.ts';

const AUTHORITY = readFileSync(CLUSTER_AUTHORITY, 'utf8');

const MIB = 1024 * 1024;

const read = (part: object) => Part.contentOf(part as ReturnType<typeof keyAccess>).read();

for (const [what, content, token] of [
  ['of one character', 'a', 'a'],
  ['of 16,384 characters', 'x'.repeat(16_384), 'x'.repeat(16_384)],
  ['with every character that it may have', TOKEN, TOKEN],
  ['with three = at its end', 'sesame===', 'sesame==='],
  ['before one line feed', `${TOKEN}\n`, TOKEN],
] as const) {
  test(`reads a token ${what} [§25, RFC 6750 §2.1]`, async (t) => {
    const tokenFile = directoryFor(t)('token', content);
    assert.deepEqual(await read(keyAccess({ tokenFile })), { token, secureContext: undefined });
  });
}

const READABLE = 'set it to a regular file of at most 1 MiB that gatehouse may read';

const FORM =
  'keyAccess: tokenFile: must be a file with a token of 1 to 16,384 letters, digits and ._~+/- ' +
  `(= at its end), and at most one line feed after it; ${READABLE}`;

for (const [what, content] of [
  ['that is empty', ''],
  ['with nothing but a line feed', '\n'],
  ['before two line feeds', `${TOKEN}\n\n`],
  ['before a carriage return', `${TOKEN}\r\n`],
  ['of 16,385 characters', 'x'.repeat(16_385)],
  ['of two lines', 'sesame\nsesame'],
  ['with a space', 'sesame sesame'],
  ['after a space', ' sesame'],
  ['with a header field after it', 'sesame\r\nHost: a.test'],
  ['with = before its end', 'se=same'],
  ['of = alone', '='],
  ['with a character outside ASCII', 'sesamé'],
  // Without their highest bits, its bytes are those of C0.
  ['with a character whose bytes look like others', 'sesamð'],
  ['with a byte-order mark', '\ufeffsesame'],
  ['with a NUL', 'sesame\0'],
  ['larger than 1 MiB', 'x'.repeat(MIB + 1)],
] as const) {
  test(`refuses a file with a token ${what}, at the start and at a fetch [§25]`, async (t) => {
    const write = directoryFor(t);
    const tokenFile = write('token', TOKEN);
    const part = keyAccess({ tokenFile });
    write('token', content);
    assert.throws(() => keyAccess({ tokenFile }), { name: 'TypeError', message: FORM });
    await assert.rejects(read(part), (thrown) => {
      assert.ok(FetchError.is(thrown));
      assert.deepEqual([thrown.reason, thrown.code], ['token-file-refused', '']);
      return true;
    });
  });
}

const NOTE = '# The cluster\n';

for (const [what, content] of [
  ['one certificate', AUTHORITY],
  ['two, with text around them', NOTE + AUTHORITY + NOTE + readFileSync(USUAL_AUTHORITY, 'utf8')],
  ['carriage returns', AUTHORITY.replaceAll('\n', '\r\n')],
  ['exactly 1 MiB', AUTHORITY.padEnd(MIB, '\n')],
] as const) {
  test(`reads authorities from a file with ${what} [§25, RFC 7468 §5.1]`, async (t) => {
    const caFile = directoryFor(t)('ca.pem', content);
    const { token, secureContext } = await read(keyAccess({ caFile }));
    assert.deepEqual([token, typeof secureContext], [undefined, 'object']);
  });
}

const CA_FORM =
  'keyAccess: caFile: must be a file with one or more certificates in PEM (BEGIN CERTIFICATE); ' + READABLE;

const BROKEN = AUTHORITY.replace(/\n[^-]+/, '\nAAAA\n');

for (const [what, content] of [
  ['nothing', ''],
  ['no block', 'sesame'],
  ['another block', AUTHORITY.replaceAll('CERTIFICATE', 'PUBLIC KEY')],
  ['a certificate cut short', AUTHORITY.slice(0, -40)],
  ['a block that is no certificate', BROKEN],
  ['a certificate before a broken one', AUTHORITY + BROKEN],
  ['a certificate before one without an end', `${AUTHORITY}-----BEGIN CERTIFICATE-----\nAAAA\n`],
  ['more than 1 MiB', AUTHORITY.padEnd(MIB + 1, '\n')],
] as const) {
  test(`refuses a file of authorities with ${what}, at the start and at a fetch [§25]`, async (t) => {
    const write = directoryFor(t);
    const caFile = write('ca.pem', AUTHORITY);
    const part = keyAccess({ caFile });
    write('ca.pem', content);
    assert.throws(() => keyAccess({ caFile }), { name: 'TypeError', message: CA_FORM });
    await assert.rejects(read(part), (thrown) => {
      assert.ok(FetchError.is(thrown));
      assert.deepEqual([thrown.reason, thrown.code], ['ca-file-refused', '']);
      return true;
    });
  });
}

function writeSparse(path: string, bytes: number) {
  writeFileSync(path, '');
  truncateSync(path, bytes);
}

for (const [what, code, prepare] of [
  ['that is missing', 'ENOENT', () => {}],
  ['that is a directory', '', (path: string) => void mkdirSync(path)],
  ['that is a pipe without a writer', '', (path: string) => void execFileSync('mkfifo', [path])],
  ['that is a device', '', (path: string) => symlinkSync('/dev/zero', path)],
  ['that Node could not hold', '', (path: string) => writeSparse(path, 3 * 1024 * MIB)],
] as const) {
  for (const [name, content, form, reason] of [
    ['tokenFile', TOKEN, FORM, 'token-file-refused'],
    ['caFile', AUTHORITY, CA_FORM, 'ca-file-refused'],
  ] as const) {
    test(`refuses a ${name} ${what}, at the start and at a fetch, without waiting [§25]`, async (t) => {
      const path = directoryFor(t)('x', content);
      const part = keyAccess({ [name]: path });
      rmSync(path);
      prepare(path);
      const message = code === '' ? form : `keyAccess: ${name}: cannot be read (${code}); ${READABLE}`;
      assert.throws(() => keyAccess({ [name]: path }), { name: 'TypeError', message });
      await assert.rejects(read(part), { reason, code });
    });
  }
}

test('refuses a file that the process may not read, with the code of the system [§25]', async (t) => {
  if (process.getuid?.() === 0) return t.skip('root may read all files');

  const tokenFile = directoryFor(t)('token', TOKEN);
  chmodSync(tokenFile, 0o200);
  assert.throws(
    () => keyAccess({ tokenFile }),
    /^TypeError: keyAccess: tokenFile: cannot be read \(EACCES\); /,
  );
  return undefined;
});

test('follows links, and a file that takes the place of another, as Kubernetes does it [§25]', async (t) => {
  const write = directoryFor(t);
  const first = write('first', TOKEN);
  const tokenFile = join(dirname(first), 'token');
  symlinkSync(first, tokenFile);
  const part = keyAccess({ tokenFile });
  assert.equal((await read(part)).token, TOKEN);
  write('first', 'second\n');
  assert.equal((await read(part)).token, 'second');
});

for (const name of ['tokenFile', 'caFile'] as const) {
  test(`counts a relative ${name} from the working directory of its start [§25]`, async (t) => {
    const path = directoryFor(t)(name, name === 'caFile' ? AUTHORITY : TOKEN);
    const before = process.cwd();
    t.after(() => process.chdir(before));
    process.chdir(dirname(path));
    const part = keyAccess({ [name]: basename(path) });
    process.chdir('/');
    const { token, secureContext } = await read(part);
    assert.ok(token ?? secureContext);
  });
}

test('keeps no file open', async (t) => {
  const write = directoryFor(t);
  const options = { tokenFile: write('token', TOKEN), caFile: write('ca.pem', AUTHORITY) };
  await read(keyAccess(options));
  const opened = () => readdirSync('/dev/fd').length;
  const before = opened();
  for (let count = 0; count < 40; count += 1) await read(keyAccess(options));
  // Other tests of this process open and close a few.
  const more = opened() - before;
  assert.ok(more < 20, `${more} more files are open`);
});

/** The file with the environment of a process, whose size the system does not tell. */
async function environmentOf(t: TestContext, bytes: number): Promise<string> {
  const names = Array.from({ length: 16 }, (_, index) => [`N${index}`, 'x'.repeat(bytes / 16)]);
  const env = { ...Object.fromEntries(names), AUTHORITY };
  const child = spawn('sleep', ['60'], { env, stdio: 'ignore' });
  t.after(() => child.kill());
  await once(child, 'spawn');
  return `/proc/${child.pid}/environ`;
}

const noEnvironment = existsSync('/proc/self/environ') ? undefined : '/proc is missing';

test(
  withReason('reads at most 1 MiB of a file that has grown since it was opened [§25]', noEnvironment),
  { skip: noEnvironment !== undefined },
  async (t) => {
    const write = directoryFor(t);
    const caFile = join(dirname(write('ca.pem', AUTHORITY)), 'link.pem');

    const linkTo = (path: string) => {
      rmSync(caFile, { force: true });
      symlinkSync(path, caFile);
    };

    linkTo(await environmentOf(t, MIB / 2));
    const part = keyAccess({ caFile });
    assert.ok((await read(part)).secureContext);
    linkTo(await environmentOf(t, MIB));
    assert.throws(() => keyAccess({ caFile }), { message: CA_FORM });
    await assert.rejects(read(part), { reason: 'ca-file-refused' });
  },
);

test('reads a file once for fetches that need it at the same time', async (t) => {
  const part = keyAccess({ tokenFile: directoryFor(t)('token', TOKEN) });
  const one = read(part);
  assert.equal(read(part), one);
  await one;
  const later = read(part);
  assert.notEqual(later, one);
  await later;

  const { readAuthorities } = Part.contentOf(part);
  const authorities = readAuthorities();
  assert.equal(readAuthorities(), authorities);
  await authorities;
});

for (const [what, options, message] of [
  ['neither', {}, 'keyAccess: has neither tokenFile nor caFile; set one of them'],
  ['empty text', { tokenFile: '' }, 'keyAccess: tokenFile: is empty; write it or remove it'],
  ['a number', { caFile: 1 }, 'keyAccess: caFile: must be text'],
  ['another option', { cafile: 'x' }, 'keyAccess: cafile: is no option; write caFile or remove it'],
  ['null', null, 'keyAccess: must be an object with a member for each option'],
] as const) {
  test(`refuses ${what} in code, and says how to write it [§11]`, () => {
    assert.throws(() => keyAccess(options as never), { name: 'TypeError', message });
  });
}

test('serves the issuers of one gate, and shows nothing of its files [§11]', (t) => {
  const part = keyAccess({ tokenFile: directoryFor(t)('secret-word', TOKEN) });
  const shown = inspect(part, { depth: 9, showHidden: true }) + JSON.stringify(part);
  assert.doesNotMatch(shown, /secret-word|sesame|c2VzYW1l/);
  const { options } = makeIssuer();
  const issuers = { partner: { domain: 'partner.test', audience: 'x', keyAccess: part } };
  createGate({ ...options, issuers, keyAccess: part }).close();
  const used = 'keyAccess: already belongs to a gate or service; make another';
  assert.throws(() => createGate({ ...options, keyAccess: part }), { message: used });
  assert.throws(() => createGate({ ...options, issuers }), { message: `issuers.partner: ${used}` });
  const wrong = { ...options, keyAccess: { tokenFile: 'x' } };
  assert.throws(() => createGate(wrong as never), {
    message:
      'keyAccess: must be a part that keyAccess({ tokenFile, caFile }) makes, of the same copy of the package',
  });
});

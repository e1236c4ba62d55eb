/* What a check of two builds says when they differ: the first file and its first byte. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { firstDifference, readTarball, tarballDifference } from './compare.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

const filesWith = (files: Readonly<Record<string, string>>) =>
  new Map(Object.entries(files).map(([name, text]) => [name, bytes(text)]));

/** A tarball of these files, made by npm as a release is. */
function pack(context: TestContext, files: Readonly<Record<string, string>>): Uint8Array {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  context.after(() => rmSync(directory, { recursive: true }));
  mkdirSync(join(directory, 'dist/deep'), { recursive: true });
  for (const [name, text] of Object.entries({ 'package.json': '{"name":"a","version":"1.0.0"}', ...files })) {
    writeFileSync(join(directory, name), text);
  }
  execFileSync('npm', ['pack', '--silent', '--ignore-scripts'], { cwd: directory });
  return readFileSync(join(directory, 'a-1.0.0.tgz'));
}

const FILES = { 'dist/a.js': 'a = 1;\n', 'dist/deep/b.js': 'b = 2;\n' };

test('two tarballs of the same files do not differ, and hold each file with its bytes', (t) => {
  const one = pack(t, FILES);
  assert.equal(tarballDifference(one, pack(t, FILES)), undefined);
  const found = Object.fromEntries(
    [...readTarball(one).files].map(([name, text]) => [name, Buffer.from(text).toString()]),
  );
  assert.deepEqual(found, {
    'package/package.json': '{"name":"a","version":"1.0.0"}',
    'package/dist/a.js': 'a = 1;\n',
    'package/dist/deep/b.js': 'b = 2;\n',
  });
});

test('a byte that differs in one file of a tarball is named, with its file and its place', (t) => {
  const planted = pack(t, { ...FILES, 'dist/deep/b.js': 'b = 3;\n' });
  assert.equal(
    tarballDifference(pack(t, FILES), planted),
    'package/dist/deep/b.js differs at byte 4: 0x32 and 0x33',
  );
});

test('a file that others may do more with is named, with the place in its mode', (t) => {
  const tar = gunzipSync(pack(t, FILES));
  const header = tar.indexOf('package/dist/a.js');
  const other = Buffer.from(tar);
  other.write('000600', header + 100, 'latin1');
  assert.equal(
    tarballDifference(gzipSync(tar), gzipSync(other)),
    'the mode of package/dist/a.js differs at byte 4: 0x34 and 0x30',
  );
});

test('a tarball that was compressed otherwise is said to hold the same files', (t) => {
  const tarball = pack(t, FILES);
  const other = Uint8Array.from(tarball);
  // The system that the header of gzip names, which is no part of the files.
  other[9] = 0x07;
  assert.equal(tarballDifference(tarball, other), 'the files are the same; the archives differ at byte 9');
});

test('a file that is shorter, missing or added is named', () => {
  const files = filesWith({ a: 'xy', b: 'z' });
  assert.equal(firstDifference(files, filesWith({ a: 'xy', b: 'z' })), undefined);
  assert.equal(
    firstDifference(files, filesWith({ a: 'x', b: 'z' })),
    'a differs at byte 1: 0x79 and its end',
  );
  assert.equal(
    firstDifference(files, filesWith({ a: 'xyz', b: 'z' })),
    'a differs at byte 2: its end and 0x7a',
  );
  assert.equal(firstDifference(files, filesWith({ a: 'xy' })), 'b is in the first and not in the second');
  assert.equal(firstDifference(filesWith({ a: 'xy' }), files), 'b is in the second and not in the first');
});

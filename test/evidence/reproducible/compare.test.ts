/* What a check of two builds says when they differ: the first file and its first byte. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { firstDifference, readTarball, tarballDifference } from './compare.ts';

const FILES = { 'dist/a.js': 'a = 1;\n', 'dist/deep/b.js': 'b = 2;\n' };
const PACKAGE = '{"name":"a","version":"1.0.0"}';

const filesWith = (files: Readonly<Record<string, string>>) =>
  new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)]));

/** A tarball of the files, made by npm as a release is. */
function pack(): Buffer {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  try {
    mkdirSync(join(directory, 'dist/deep'), { recursive: true });
    for (const [name, text] of Object.entries({ 'package.json': PACKAGE, ...FILES })) {
      writeFileSync(join(directory, name), text);
    }
    execFileSync('npm', ['pack', '--silent', '--ignore-scripts'], { cwd: directory });
    return readFileSync(join(directory, 'a-1.0.0.tgz'));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const packed = pack();

/** The same tarball with some bytes of the archive replaced, at a distance from where a text stands in it. */
function planted(beside: string, distance: number, bytes: string): Buffer {
  const archive = gunzipSync(packed);
  archive.write(bytes, archive.indexOf(beside) + distance, 'latin1');
  return gzipSync(archive);
}

test('two tarballs of the same files do not differ, and hold each file with its bytes', () => {
  assert.equal(tarballDifference(packed, Buffer.from(packed)), undefined);
  const found = [...readTarball(packed).files].map(([name, bytes]) => [name, Buffer.from(bytes).toString()]);
  assert.deepEqual(Object.fromEntries(found), {
    'package/package.json': PACKAGE,
    'package/dist/a.js': FILES['dist/a.js'],
    'package/dist/deep/b.js': FILES['dist/deep/b.js'],
  });
});

test('a byte that differs in one file of a tarball is named, with its file and its position', () => {
  assert.equal(
    tarballDifference(packed, planted('b = 2', 4, '3')),
    'package/dist/deep/b.js differs at byte 4: 0x32 and 0x33',
  );
});

test('a file whose mode differs is named, with the byte of the mode that differs', () => {
  assert.equal(
    tarballDifference(packed, planted('package/dist/a.js', 100, '000600')),
    'the mode of package/dist/a.js differs at byte 4: 0x34 and 0x30',
  );
});

test('a tarball that was compressed differently is reported to hold the same files', () => {
  const other = Buffer.from(packed);
  // The system that the header of gzip names, which is no part of the files.
  other[9] = 0x07;
  assert.equal(tarballDifference(packed, other), 'the files are the same; the archives differ at byte 9');
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

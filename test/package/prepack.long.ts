/* What npm publishes: `npm pack` with its scripts, in a copy, since they build anew. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { installInto, npm, ROOT } from '../support/packed.ts';

const PACKED = ['src', 'docs', 'package.json', 'tsconfig.json', 'tsconfig.dist.json', 'README.md', 'LICENSE'];

test('no file of the tarball names a source map, since the tarball holds none', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-prepack-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const copy = join(directory, 'copy');
  for (const name of [...PACKED, 'CHANGELOG.md', 'SECURITY.md']) {
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  npm(copy, 'pack', '--pack-destination', directory);
  const filename = readdirSync(directory).find((name) => name.endsWith('.tgz')) ?? '';
  installInto(directory, { filename, size: 0, files: [] });

  const installed = join(directory, 'node_modules/gatehouse-http/dist');
  const names = readdirSync(installed, { recursive: true, encoding: 'utf8' });
  const scripts = names.filter((name) => name.endsWith('.js'));
  assert.ok(scripts.length > 100);
  const naming = scripts.filter((name) =>
    readFileSync(join(installed, name), 'utf8').includes('sourceMappingURL'),
  );
  assert.deepEqual(naming, []);
});

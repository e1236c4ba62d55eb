/* Programs of a user that run a service, in a folder where the package has its name. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const OPENING = `
import * as gatehouse from 'gatehouse-http';
const { createGate, fail, get, needs, open, runForwardAuth, runService, scope, upstream } = gatehouse;
const tell = (message, more) => console.log(JSON.stringify({ message, ...more }));
`;

/** The command of a program, which has every function of the package, and `tell` to write a log line. */
export function programOf(t: TestContext, text: string): readonly [string, string] {
  return wholeProgramOf(t, OPENING + text);
}

/** The same of a program that imports what it needs, such as these modules, by name. */
export function wholeProgramOf(
  t: TestContext,
  text: string,
  modules: Readonly<Record<string, string>> = {},
): readonly [string, string] {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-program-'));
  t.after(() => rmSync(directory, { recursive: true }));
  symlinkSync(join(ROOT, 'dist'), join(directory, 'dist'));
  cpSync(join(ROOT, 'package.json'), join(directory, 'package.json'));
  const file = join(directory, 'main.mjs');
  writeFileSync(file, text);
  for (const [name, source] of Object.entries(modules)) {
    mkdirSync(join(directory, 'node_modules', name), { recursive: true });
    writeFileSync(
      join(directory, 'node_modules', name, 'package.json'),
      '{ "type": "module", "main": "main.js" }',
    );
    writeFileSync(join(directory, 'node_modules', name, 'main.js'), source);
  }

  return [process.execPath, file];
}

/* Programs of this tool: a policy or a service over the built package, as a process on a port of its own. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startProcess, type TestProcess } from '../../support/process.ts';
import type { Environment } from '../../support/settings.ts';

const PACKAGE = fileURLToPath(new URL('../../../dist/gatehouse.js', import.meta.url));

const NAMES = 'get, needs, open, runForwardAuth, runService, scope, upstream';

/** Programs that import the package, in a folder that `remove` takes away. */
export function writePrograms(programs: Readonly<Record<string, string>>) {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-forward-'));
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(
      join(directory, `${name}.mjs`),
      `import { ${NAMES} } from ${JSON.stringify(PACKAGE)};\n${text}`,
    );
  }

  return {
    /** Starts a program, which runs until it is stopped. Resolves when it has its keys. */
    async start(name: string, environment: Environment): Promise<TestProcess> {
      const program = [process.execPath, join(directory, `${name}.mjs`)];
      const started = await startProcess({ program, environment });
      await started.logged('signing keys loaded');
      return started;
    },

    remove: () => rmSync(directory, { recursive: true }),
  };
}

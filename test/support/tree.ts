/* The files of this repository below a folder. Other tests may be installing packages there meanwhile. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Paths from the folder. Enters no `node_modules`. */
export function filesBelow(folder: URL | string): string[] {
  const path = typeof folder === 'string' ? folder : fileURLToPath(folder);
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === 'node_modules') return [];
    if (!entry.isDirectory()) return [entry.name];

    return filesBelow(join(path, entry.name)).map((name) => `${entry.name}/${name}`);
  });
}

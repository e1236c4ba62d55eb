/* The lists of components (CycloneDX 1.5) of the package, and of what the image adds to its base. npm reads them
   from the lock file. What changes from run to run is left out, the serial number and the time, so that the
   same version of the package and of npm always gives the same list. */
import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { posix } from 'node:path';
import { npm, ROOT } from './packed.ts';

interface Component {
  readonly 'bom-ref': string;
  readonly type: string;
  readonly name: string;
  readonly version: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

interface Dependency {
  readonly ref: string;
  readonly dependsOn: readonly string[];
}

export interface Sbom {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly Dependency[];
}

const WORDS = ['sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev', '--package-lock-only'];

interface Given extends Sbom {
  readonly serialNumber?: string;
  readonly metadata: Sbom['metadata'] & { readonly timestamp?: string };
}

/** The list of the package; with the hash of its tarball, in hexadecimal digits. */
export function sbomOfPackage(sha512?: string): Sbom {
  const { serialNumber: _, ...given } = JSON.parse(npm(ROOT, ...WORDS)) as Given;
  const { timestamp: __, ...metadata } = given.metadata;
  const { name } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { name: string };
  const hashes = sha512 === undefined ? {} : { hashes: [{ alg: 'SHA-512', content: sha512 }] };
  // npm would name the component after the folder.
  return { ...given, metadata: { ...metadata, component: { ...metadata.component, name, ...hashes } } };
}

/**
 * The list of what the image adds: the same code without its declarations. Its base has a list of its own.
 */
export function sbomOfImage({ metadata, ...list }: Sbom): Sbom {
  const { hashes: _, ...component } = metadata.component;
  return {
    ...list,
    metadata: { ...metadata, component: { ...component, type: 'application', name: 'gatehouse' } },
  };
}

/**
 * What built code loads that is neither built with it nor a module of Node: what a list would have to name.
 */
export function loadedFromElsewhere(): readonly string[] {
  const files = readdirSync(`${ROOT}dist`, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.js'),
  );
  return files.flatMap((name) => {
    const calls = readFileSync(`${ROOT}dist/${name}`, 'utf8').matchAll(
      /\b(?:require|import)\((['"])([^'"]+)\1\)/g,
    );
    return [...calls]
      .map(([, , from = '']) => from)
      .filter((from) => {
        if (from.startsWith('node:')) return !builtinModules.includes(from.slice('node:'.length));
        return !from.startsWith('.') || !files.includes(posix.join(posix.dirname(name), from));
      })
      .map((from) => `${name}: ${from}`);
  });
}

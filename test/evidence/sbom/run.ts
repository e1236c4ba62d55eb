/* Makes the lists of components of the package and of the image, and checks them against the schema of CycloneDX.
   With a folder, such as `npm run evidence sbom -- release`, it writes them there, with the hash of the tarball that
   lies there. Exits with 1 when a list breaks the schema, has a component, or leaves out what the code loads.

   Shows: the component lists of the package and the image.
   Takes: 5 s.
   Needs: packages. */
import Ajv from 'ajv';
import addFormats from 'ajv-formats';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadedFromElsewhere, sbomOfImage, sbomOfPackage, type Sbom } from '../../support/sbom.ts';

const SCHEMAS = fileURLToPath(
  new URL('../node_modules/@cyclonedx/cyclonedx-library/res/schema/', import.meta.url),
);

const schema = (name: string) =>
  JSON.parse(readFileSync(`${SCHEMAS}${name}.SNAPSHOT.schema.json`, 'utf8')) as object;

const ajv = new Ajv.default({ strict: false });
addFormats.default(ajv);
for (const format of ['iri-reference', 'idn-email']) ajv.addFormat(format, true);

for (const name of ['spdx', 'jsf-0.82']) {
  ajv.addSchema(schema(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`);
}

const check = ajv.compile(schema('bom-1.5'));

const [given] = process.argv.slice(2);
const folder = given === undefined ? undefined : resolve(given);
const tarball = folder === undefined ? undefined : readdirSync(folder).find((name) => name.endsWith('.tgz'));

/** Of the tarball in the folder, if there is one. */
function hashOfTarball(): string | undefined {
  if (folder === undefined || tarball === undefined) return undefined;
  return createHash('sha512')
    .update(readFileSync(join(folder, tarball)))
    .digest('hex');
}

let isGood = true;

function judge(name: string, list: Sbom): void {
  const isValid = check(list);
  const { component } = list.metadata;
  const count = `${list.components.length} components`;
  console.log(
    `${component.name} ${component.version} (${component.type}): ${count}, ${isValid ? 'valid' : 'NOT valid'}`,
  );
  if (!isValid) console.log(ajv.errorsText(check.errors));
  isGood &&= isValid && list.components.length === 0;
  if (folder !== undefined) {
    const file = join(folder, `${name}-${component.version}.cdx.json`);
    writeFileSync(file, `${JSON.stringify(list, undefined, 2)}\n`);
    console.log(`  written: ${file}`);
  }
}

const ofPackage = sbomOfPackage(hashOfTarball());
judge('gatehouse-http', ofPackage);
judge('gatehouse-image', sbomOfImage(ofPackage));

const wrong = { ...ofPackage, components: [{ name: 'without a type' }] };
const isWrongRefused = !check(wrong);
console.log(`a list that is not valid: ${isWrongRefused ? 'refused' : 'NOT refused'}`);

const others = loadedFromElsewhere();
const loaded = others.length === 0 ? 'nothing but itself and Node' : others.join(', ');
console.log(`the built code loads ${loaded}`);

process.exitCode = isGood && isWrongRefused && others.length === 0 ? 0 : 1;

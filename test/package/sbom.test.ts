/* The lists of components: there is nothing in the package or in the image but its own code. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ROOT } from '../support/packed.ts';
import { loadedFromElsewhere, sbomOfImage, sbomOfPackage } from '../support/sbom.ts';

const { version } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { version: string };

const ofPackage = sbomOfPackage('ab');

const LISTS = {
  package: { list: ofPackage, type: 'library', name: 'gatehouse-http' },
  image: { list: sbomOfImage(ofPackage), type: 'application', name: 'gatehouse' },
};

for (const [what, { list, type, name }] of Object.entries(LISTS)) {
  test(`the SBOM of the ${what} lists no component`, () => {
    assert.deepEqual(list.components, []);
    const [own, ...others] = list.dependencies;
    assert.deepEqual(own, { ref: list.metadata.component['bom-ref'], dependsOn: [] });
    assert.deepEqual(others, []);
  });

  test(`the SBOM of the ${what} is CycloneDX 1.5 and has the type, the name and the version of the ${what}`, () => {
    assert.deepEqual([list.bomFormat, list.specVersion], ['CycloneDX', '1.5']);
    const { component } = list.metadata;
    assert.deepEqual([component.type, component.name, component.version], [type, name, version]);
  });
}

test('the SBOM of the package has the hash of the tarball, and the SBOM of the image has no hash', () => {
  assert.equal(LISTS.image.list.metadata.component.hashes, undefined);
  assert.deepEqual(ofPackage.metadata.component.hashes, [{ alg: 'SHA-512', content: 'ab' }]);
});

test('the SBOM of the package is the same whenever it is made', () => {
  assert.deepEqual(sbomOfPackage('ab'), ofPackage);
  assert.doesNotMatch(JSON.stringify(ofPackage), /urn:uuid|"timestamp"/);
});

test('built code loads nothing but itself and Node, so that the SBOMs leave nothing out', () => {
  assert.deepEqual(loadedFromElsewhere(), []);
});

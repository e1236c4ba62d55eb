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
  test(`the list of the ${what} has no component`, () => {
    assert.deepEqual(list.components, []);
    const [own, ...others] = list.dependencies;
    assert.deepEqual(own, { ref: list.metadata.component['bom-ref'], dependsOn: [] });
    assert.deepEqual(others, []);
  });

  test(`the list of the ${what} is CycloneDX 1.5 and names its component`, () => {
    assert.deepEqual([list.bomFormat, list.specVersion], ['CycloneDX', '1.5']);
    const { component } = list.metadata;
    assert.deepEqual([component.type, component.name, component.version], [type, name, version]);
  });
}

test('the list of the package names the hash of the tarball, which is not in the image', () => {
  assert.equal(LISTS.image.list.metadata.component.hashes, undefined);
  assert.deepEqual(ofPackage.metadata.component.hashes, [{ alg: 'SHA-512', content: 'ab' }]);
});

test('a list is the same whenever it is made', () => {
  assert.deepEqual(sbomOfPackage('ab'), ofPackage);
  assert.doesNotMatch(JSON.stringify(ofPackage), /urn:uuid|"timestamp"/);
});

test('built code loads nothing but itself and Node, so that the lists leave nothing out', () => {
  assert.deepEqual(loadedFromElsewhere(), []);
});

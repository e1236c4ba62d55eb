/* The recipe for uploads: what is stored, under which names, and that no refused upload leaves anything behind. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openWire } from '../../support/client.ts';
import { until } from '../../support/watch.ts';
import { outcomeOf, startRecipe, type Body, type Recipe } from './run-recipe.ts';

const UPLOAD_BYTES = 65_536;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
const OCTETS = { 'Content-Type': 'application/octet-stream' };

describe('the recipe uploads', () => {
  let recipe: Recipe;
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-uploads-'));

  const start = (environment = {}) =>
    startRecipe('uploads', { UPLOADS: folder, UPLOAD_BYTES: String(UPLOAD_BYTES), ...environment });

  before(async () => {
    recipe = await start();
  });

  after(async () => {
    await recipe.stop();
    rmSync(folder, { recursive: true });
  });

  const formOf = (...photos: readonly (Blob | string)[]) => {
    const form = new FormData();
    form.set('title', 'Öl');
    for (const photo of photos) {
      if (typeof photo === 'string') form.append('photo', photo);
      else form.append('photo', photo, '../../evil.html');
    }
    return form;
  };

  const sendForm = (body: Body, fields = {}) =>
    recipe.send('POST', '/api/photos', 'write:files', body, fields);

  const sendFile = (body: Body, fields: object = OCTETS, method = 'PUT', path = '/api/uploads') =>
    recipe.send(method, path, 'write:files', body, { ...fields });

  const read = (name: string) => recipe.send('GET', `/api/files/${name}`, 'read:files');

  /** Expects that this response is given, and that no file stays. */
  async function expectRefusal(response: () => Promise<Response>, status: number, error: string) {
    const names = readdirSync(folder);
    assert.deepEqual(await outcomeOf(response()), [status, error]);
    assert.deepEqual(readdirSync(folder), names);
  }

  test('stores the photo of a form under a name of its own, and gives it back as a download', async () => {
    const photo = new Uint8Array(100_000).fill(7);
    const response = await sendForm(formOf(new Blob([photo])));
    const { name, title } = (await response.json()) as { name: string; title: string };
    assert.deepEqual([response.status, title], [201, 'Öl']);
    assert.match(name, UUID);
    assert.equal(response.headers.get('location'), `/api/files/${name}`);
    const back = await read(name);
    assert.deepEqual(new Uint8Array(await back.arrayBuffer()), photo);
    assert.deepEqual(
      ['content-type', 'content-disposition', 'x-content-type-options'].map((field) =>
        back.headers.get(field),
      ),
      ['application/octet-stream', 'attachment', 'nosniff'],
    );
  });

  test('refuses forms that are too long, of another type, broken, or without exactly one photo', async () => {
    const photo = new Blob(['x']);
    await expectRefusal(
      () => sendForm(formOf(new Blob([new Uint8Array(5_242_881)]))),
      413,
      'content_too_large',
    );
    await expectRefusal(() => sendForm('{}'), 415, 'unsupported_media_type');
    await expectRefusal(() => sendForm(new URLSearchParams({ photo: 'x' })), 415, 'unsupported_media_type');
    for (const form of [formOf(), formOf('text'), formOf(photo, photo)]) {
      await expectRefusal(() => sendForm(form), 400, 'invalid_body');
    }
    for (const type of ['multipart/form-data', 'multipart/form-data; boundary=b']) {
      const broken = '--b\r\nContent-Disposition: form-data; name="photo"; filename="x"\r\n\r\nx';
      await expectRefusal(() => sendForm(broken, { 'Content-Type': type }), 400, 'invalid_body');
    }
    await expectRefusal(() => sendForm(new Uint8Array()), 400, 'invalid_body');
  });

  test('stores a file of the largest size, and refuses one byte more, by its length and by counting', async () => {
    const file = new Uint8Array(UPLOAD_BYTES).fill(9);
    const response = await sendFile(file);
    const { name } = (await response.json()) as { name: string };
    assert.equal(response.status, 201);
    assert.deepEqual(new Uint8Array(readFileSync(join(folder, name))), file);
    await expectRefusal(() => sendFile(new Uint8Array(UPLOAD_BYTES + 1)), 413, 'content_too_large');
    const names = readdirSync(folder);
    const wire = await openUpload('Transfer-Encoding: chunked');
    wire.send(`${(UPLOAD_BYTES + 1).toString(16)}\r\n${'x'.repeat(UPLOAD_BYTES + 1)}\r\n`);
    assert.match(await wire.untilClosed(), /^HTTP\/1\.1 413 /);
    assert.deepEqual(readdirSync(folder), names);
  });

  test('refuses a file with another method, below the path, of another type, or without content', async () => {
    const posted = await sendFile('x', OCTETS, 'POST');
    assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'PUT']);
    await expectRefusal(() => sendFile('x', OCTETS, 'PUT', '/api/uploads/x'), 404, 'not_found');
    await expectRefusal(() => sendFile('x', {}), 415, 'unsupported_media_type');
    await expectRefusal(() => sendFile(new Uint8Array()), 400, 'invalid_body');
  });

  async function openUpload(framing: string, at = recipe) {
    const wire = await openWire(at.service.port);
    const { Authorization } = at.bearer('write:files');
    const fields = [
      `Host: a`,
      `Authorization: ${Authorization}`,
      'Content-Type: application/octet-stream',
      framing,
    ];
    wire.send(`PUT /api/uploads HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`);
    return wire;
  }

  for (const [setting, status] of [
    ['REQUEST_TIMEOUT_SECONDS', 408],
    ['HANDLER_TIMEOUT_SECONDS', 503],
  ] as const) {
    test(`gives a file that takes longer than ${setting} ${status}, and leaves nothing of it`, async () => {
      const names = readdirSync(folder);
      const hasty = await start({ [setting]: '1' });
      const slow = await openUpload('Content-Length: 10', hasty);
      slow.send('half');
      const received = await slow.untilClosed();
      await until('nothing of it is left', () => readdirSync(folder).length === names.length, 10);
      await hasty.stop();
      assert.ok(received.startsWith(`HTTP/1.1 ${status} `));
    });
  }

  test('leaves nothing of a file that is cut off', async () => {
    const names = readdirSync(folder);
    const cut = await openUpload('Content-Length: 10');
    cut.send('half');
    await until('it is being written', () => readdirSync(folder).length > names.length, 10);
    cut.destroy();
    await until('nothing of it is left', () => readdirSync(folder).length === names.length, 10);
  });

  test('reads no body of a caller who may not upload', async () => {
    for (const scope of ['read:files', '']) {
      const refused = () => recipe.send('PUT', '/api/uploads', scope, 'x', OCTETS);
      await expectRefusal(refused, 403, 'insufficient_scope');
    }
    await expectRefusal(() => fetch(`${recipe.origin}/api/photos`, { method: 'POST' }), 401, 'unauthorized');
  });

  test('gives no file but those that it has stored', async () => {
    for (const name of ['..%2F..%2Fetc%2Fpasswd', '%2Fetc%2Fpasswd', 'a.part', crypto.randomUUID()]) {
      await expectRefusal(() => read(name), 404, 'not_found');
    }
  });
});

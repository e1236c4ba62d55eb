/* Uploads: a form with a photo, which is held in memory, and a large file, which goes to the disk as it comes. Set
   UPLOADS to a folder, UPLOAD_BYTES to the size of the largest file, and both REQUEST_TIMEOUT_SECONDS and
   HANDLER_TIMEOUT_SECONDS to the time that it may take: the handler waits for the file as it comes. */
import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { bytes, created, fail, get, mount, needs, post, runService, scope } from 'gatehouse-http';

const { UPLOADS: FOLDER = 'uploads', UPLOAD_BYTES = '1073741824' } = process.env;
const PHOTO_BYTES = 5_242_880;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

const [mayRead, mayWrite] = [needs(scope('read:files')), needs(scope('write:files'))];

/** A name of our own: the client's could lead out of the folder, or replace another file. */
async function save(content) {
  const name = randomUUID();
  const part = join(FOLDER, `${name}.part`);
  try {
    await writeFile(part, content, { flag: 'wx' });
    await rename(part, join(FOLDER, name));
    return name;
  } catch (error) {
    await rm(part, { force: true });
    // Passed on: a body that is too long or too slow, or has been cut off, gets its own response.
    throw error;
  }
}

async function savePhoto({ headers, body }) {
  const form = await new Response(body, { headers: { 'Content-Type': headers['content-type'] } })
    .formData()
    .catch(() => undefined);
  const [photo, ...others] = form?.getAll('photo') ?? [];
  if (!(photo instanceof File) || others.length > 0) {
    throw fail(400, 'invalid_body', 'The form must have one file named photo');
  }

  const name = await save(Buffer.from(await photo.arrayBuffer()));
  return created(`/api/files/${name}`, { name, title: String(form.get('title') ?? '') });
}

/** A mount passes on every method and every path below it. */
async function saveFile({ method, url, headers, body }) {
  if (new URL(url).pathname !== '/api/uploads') throw fail(404, 'not_found', 'There is no such resource');
  if (method !== 'PUT') return new Response(null, { status: 405, headers: { Allow: 'PUT' } });
  if (headers.get('content-type') !== 'application/octet-stream') {
    throw fail(415, 'unsupported_media_type', 'The Content-Type must be application/octet-stream');
  }
  if (body === null) throw fail(400, 'invalid_body', 'The file is missing');

  const name = await save(body);
  return Response.json({ name }, { status: 201, headers: { Location: `/api/files/${name}` } });
}

function ignoreAbsent(error) {
  if (error.code !== 'ENOENT') throw error;
}

/** As a download, whatever is in it: a browser must not show an uploaded page as one of this site. */
async function readFile({ parameters: { name } }) {
  // A parameter is decoded, and may have a slash in it.
  const file = UUID.test(name) ? await open(join(FOLDER, name)).catch(ignoreAbsent) : undefined;
  if (file === undefined) throw fail(404, 'not_found', 'There is no such file');

  const headers = { 'Content-Type': 'application/octet-stream', 'Content-Disposition': 'attachment' };
  return new Response(Readable.toWeb(file.createReadStream()), { headers });
}

const form = bytes({ types: ['multipart/form-data'], limitBytes: PHOTO_BYTES });

const routes = [
  post('/api/photos', mayWrite, form, savePhoto),
  mount('/api/uploads', mayWrite, saveFile, { limitBytes: Number(UPLOAD_BYTES) }),
  get('/api/files/{name}', mayRead, readFile),
];

await runService({ routes }, { onStart: () => mkdir(FOLDER, { recursive: true }) });

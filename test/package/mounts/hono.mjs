// A Hono app in a service: its own router, an upload, and a download that is made as it is read.
import { Hono } from 'hono';
import { stream } from 'hono/streaming';
import { mount, needs, runService, scope } from 'gatehouse-http';

const files = new Map();
const app = new Hono().basePath('/files');

/** What a route needs beyond the access of the mount. */
const requires = (access) => async (context, next) => {
  const { refusal } = await context.env.authorize(access);
  return refusal ? new Response(refusal.body, refusal) : next();
};

const mayWrite = requires(needs(scope('write:files')));

app.get('/', (context) => context.json([...files.keys()]));

app.post('/', mayWrite, async (context) => {
  // An error of reading is the service's, and one of parsing the client's.
  const body = await context.req.arrayBuffer();
  const headers = { 'Content-Type': context.req.header('content-type') ?? '' };
  const form = await new Response(body, { headers }).formData().catch(() => undefined);
  const file = form?.get('file');
  if (!(file instanceof File)) return context.json({ error: 'no_file' }, 400);

  const id = crypto.randomUUID();
  files.set(id, { owner: context.env.caller.subject, bytes: new Uint8Array(await file.arrayBuffer()) });
  return context.json({ id }, 201);
});

app.get('/:id', (context) => {
  const file = files.get(context.req.param('id'));
  if (file === undefined) return context.notFound();

  context.header('Content-Type', 'application/octet-stream');
  return stream(context, async (body) => {
    for (let at = 0; at < file.bytes.length; at += 65_536) {
      await body.write(file.bytes.subarray(at, at + 65_536));
    }
  });
});

app.delete('/:id', mayWrite, (context) => {
  const id = context.req.param('id');
  if (files.get(id)?.owner !== context.env.caller.subject) return context.notFound();

  files.delete(id);
  return context.body(null, 204);
});

// The service logs it, and makes it a 500, or a 413 if the body was too long.
app.onError((error) => {
  throw error;
});

await runService({
  routes: [
    mount('/files', needs(scope('read:files')), (request, context) => app.fetch(request, context), {
      limitBytes: 16_777_216,
    }),
  ],
});

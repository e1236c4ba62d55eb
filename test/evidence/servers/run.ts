/* Puts the gate in front of real servers, each with exactly the lines of docs/in-front-of-your-server.md and
   docs/streams.md. The compiler takes the lines first. Each server is asked: no token, one without the scope,
   a good one, one whose keys cannot be had, one bound to a key with its proof, once and again, two tokens, and
   a path with a dot segment. None may write to standard error, as Nest does when it is made to send two
   responses. Some are sent raw bytes: hosts and targets that no usual client sends. Streams end with their
   tokens. Words such as `koa3` or `nest11` choose some; `fast` is all but those that need a build.

   Shows: the samples in docs/in-front-of-your-server.md and docs/streams.md, in real servers on Node, Bun and Deno
   (`npm run evidence servers fast` skips Next.js, SvelteKit and Astro).
   Takes: 2 min.
   Needs: packages. */
import { problemsOf } from './ask.ts';
import { NEXT_APPS, PUBLIC_URL, startNext } from './next-app.ts';
import { programOfServer, SERVERS } from './programs.ts';
import { PUBLIC_ORIGIN, RAW_SERVERS, rawProblemsOf } from './raw.ts';
import { checkStream, programOfStream, STREAMS } from './streams.ts';
import { startViteApp, VITE_APPS } from './vite-apps.ts';
import { openWorkshop } from './workshop.ts';

const words = process.argv.slice(2);

const isNamed = (name: string, word: string) => name === word || name.startsWith(`${word}-`);

const names = [SERVERS, STREAMS, NEXT_APPS, VITE_APPS].flatMap(Object.keys);

const isKnown = (word: string) => word === 'fast' || names.some((name) => isNamed(name, word));

const unknown = words.find((word) => !isKnown(word));
if (unknown !== undefined) throw new Error(`no server is called ${unknown}`);

const isAsked = (name: string) =>
  words.length === 0 ||
  words.some((word) => isNamed(name, word)) ||
  (words.includes('fast') && !(name in NEXT_APPS || name in VITE_APPS));

const servers = Object.entries(SERVERS).filter(([name]) => isAsked(name));
const streams = Object.entries(STREAMS).filter(([name]) => isAsked(name));
const workshop = await openWorkshop();
let isGood = true;

function report(name: string, problems: readonly string[]) {
  isGood &&= problems.length === 0;
  console.log(`${name}: ${problems.length === 0 ? 'as expected' : problems.join('\n  ')}`);
}

try {
  for (const [name, { modules = {} }] of servers) workshop.addFolder(name, modules);

  workshop.compile({
    ...Object.fromEntries(servers.map(([name, server]) => [name, programOfServer(server)])),
    ...Object.fromEntries(streams.map(([name, stream]) => [name, programOfStream(stream)])),
  });

  for (const [name, { runtime, path = '/api/orders', ...expected }] of servers) {
    const running = await workshop.run(name, runtime);
    const target = { ...expected, url: running.url, publicUrl: running.url, path };
    const problems = await problemsOf(target, workshop.issuer)
      .catch((error) => [`it does not respond: ${error}`])
      .finally(running.stop);
    report(name, [...problems, ...(running.errors() === '' ? [] : ['it wrote to standard error'])]);
  }

  for (const [name, { runtime, path = '/api/orders' }] of servers) {
    const server = RAW_SERVERS[name];
    if (server === undefined) continue;

    const { url, errors, stop } = await workshop.run(name, runtime, { publicUrl: PUBLIC_ORIGIN });
    const problems = await rawProblemsOf(url, path, workshop.issuer, server).finally(stop);
    const isQuiet = server.failsByItself || errors() === '';
    report(`${name}, raw bytes`, [...problems, ...(isQuiet ? [] : ['it wrote to standard error'])]);
  }

  for (const [name, stream] of streams) {
    const running = await workshop.run(name, stream.runtime);
    const { url, stop } = running;
    const problems: string[] = [];
    try {
      for (const asked of stream.handshakes ?? []) {
        problems.push(...(await problemsOf({ url, publicUrl: url, ...asked }, workshop.issuer)));
      }
      await checkStream(running, workshop.issuer, stream);
      report(name, problems);
    } finally {
      await stop();
    }
  }

  for (const [name, app] of Object.entries(NEXT_APPS).filter(([name]) => isAsked(name))) {
    const { url, stop } = await startNext(name, app, workshop);
    const target = {
      url,
      publicUrl: PUBLIC_URL,
      path: `${app.basePath}/api/orders`,
      dots: 'resolved',
      hidesRepetition: true,
    };
    report(name, await problemsOf(target, workshop.issuer).finally(stop));
  }

  for (const [name, app] of Object.entries(VITE_APPS).filter(([name]) => isAsked(name))) {
    const { url, errors, stop } = await startViteApp(name, app, workshop);
    const path = '/api/orders';
    const target = { url, publicUrl: url, path, dots: 'resolved', hidesRepetition: true };
    const problems = await problemsOf(target, workshop.issuer).finally(stop);
    report(name, [...problems, ...(errors() === '' ? [] : ['it wrote to standard error'])]);
  }
} finally {
  await workshop.close();
}

process.exitCode = isGood ? 0 : 1;

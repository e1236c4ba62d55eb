/* What stands behind docs/forward-auth.md. Sends FORWARD_TARGETS targets (5,000) through nginx and through
   Caddy, and compares what gatehouse was asked about with what the server behind received; sends
   FORWARD_REQUESTS requests (10,000) through each while gatehouse ends and starts again; measures what a
   question costs. The words `targets`, `restarts` and `price` select only those parts. Exits with 1 when a
   request is served otherwise than it was judged, or a question costs more than MOST_RATIO times the request
   itself. `FORWARD_ROUNDS` is the number of rounds in which the cost is measured.

   Shows: nginx and Caddy with unusual request targets, and during restarts.
   Takes: 3 min.
   Needs: `nginx`, `caddy`. */
import { startProvider } from '../../idp/provider.ts';
import { PROXIES } from '../../options/forward-auth-proxies.ts';
import { walkTargets } from '../../options/forward-auth-walk.ts';
import { printTable, type Row } from '../../support/figures.ts';
import { measurePrice } from './price.ts';
import { walkRestarts } from './restarts.ts';

const MOST_RATIO = 1.15;
const REQUESTS_OF_A_ROUND = 20_000;

const { FORWARD_TARGETS = '5000', FORWARD_REQUESTS = '10000', FORWARD_ROUNDS = '40' } = process.env;

const asked = process.argv.slice(2);

const isAsked = (part: string) => asked.length === 0 || asked.includes(part);

for (const { name, missing } of PROXIES) {
  if (missing !== undefined) console.log(`without ${name}: ${missing}`);
}

const proxies = PROXIES.filter(({ missing }) => missing === undefined);

let isWrong = false;

if (isAsked('targets')) {
  const rows: Row[] = [];
  for (const proxy of proxies) {
    rows.push({ proxy: proxy.name, ...(await walkTargets(proxy, Number(FORWARD_TARGETS))) });
  }
  printTable('targets: every one that passed was served as it was judged', rows);
}

const provider = await startProvider();

if (isAsked('restarts')) {
  const rows: Row[] = [];
  for (const proxy of proxies) {
    const outcome = await walkRestarts(proxy, provider, Number(FORWARD_REQUESTS));
    if (outcome.unjudged > 0 || outcome.served === 0) isWrong = true;
    rows.push({ proxy: proxy.name, ...outcome });
  }
  printTable('requests while gatehouse restarts', rows);
}

if (isAsked('price')) {
  const price = await measurePrice(provider, Number(FORWARD_ROUNDS), REQUESTS_OF_A_ROUND);
  if (price.ratio > MOST_RATIO) isWrong = true;
  printTable(`processor time in microseconds, ratio at most ${MOST_RATIO}`, [price]);
}

await provider.stop();
process.exitCode = isWrong ? 1 : 0;

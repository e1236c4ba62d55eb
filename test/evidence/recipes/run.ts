/* The recipes of docs/recipes.md that need more than the package.

   Shows: that the recipes of [docs/recipes.md](docs/recipes.md) work with a real PostgreSQL, also when that is down,
   slow or silent; that the packages `eventsource` and `@microsoft/fetch-event-source` come back to an event stream
   with a fresh token; and that an API in Express, ported to a service, responds as before.
   Takes: 1 min.
   Needs: packages, postgresql. */
import { tryEventClients } from './events.ts';
import { tryPort } from './port.ts';
import { tryPostgres } from './postgres.ts';

await tryEventClients();
await tryPostgres();
await tryPort();
process.exit(0);

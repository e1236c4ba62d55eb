/* The recipes of docs/recipes.md that need more than the package.

   Shows: the event, PostgreSQL and Express [recipes](docs/recipes.md), even during database outages.
   Takes: 1 min.
   Needs: packages, postgresql. */
import { tryEventClients } from './events.ts';
import { tryPort } from './port.ts';
import { tryPostgres } from './postgres.ts';

await tryEventClients();
await tryPostgres();
await tryPort();
process.exit(0);

/* The recipes of docs/recipes.md that need more than the package.

   Shows: that the [recipes](docs/recipes.md) work with a real PostgreSQL, also when that is down, slow or
   silent; that event streams come back with a fresh token; and that an API ported from Express responds as
   before.
   Takes: 1 min.
   Needs: packages, postgresql. */
import { tryEventClients } from './events.ts';
import { tryPort } from './port.ts';
import { tryPostgres } from './postgres.ts';

await tryEventClients();
await tryPostgres();
await tryPort();
process.exit(0);

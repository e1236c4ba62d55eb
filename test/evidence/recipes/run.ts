/* The recipes of docs/recipes.md that need more than the package.

   Shows: the [recipes](docs/recipes.md) with a real PostgreSQL, also when the database is down, slow or silent; event
   streams that resume with a fresh token; and an API before and after it is ported from Express.
   Takes: 1 min.
   Needs: packages, postgresql. */
import { tryEventClients } from './events.ts';
import { tryPort } from './port.ts';
import { tryPostgres } from './postgres.ts';

await tryEventClients();
await tryPostgres();
await tryPort();
process.exit(0);

import { runService } from 'gatehouse-http';
import { routes } from './orders.mjs';

await runService({ routes });

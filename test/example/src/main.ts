import { runService } from 'gatehouse-http';
import { Orders } from './orders.ts';
import { routesOf } from './routes.ts';

runService({ routes: routesOf(new Orders()) });

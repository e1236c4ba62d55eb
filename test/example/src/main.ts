import { runService } from 'gatehouse';
import { Orders } from './orders.ts';
import { routesOf } from './routes.ts';

runService({ routes: routesOf(new Orders()) });

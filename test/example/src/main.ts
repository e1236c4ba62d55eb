import { runService } from 'gatehouse';
import { Orders } from './orders.ts';
import { rowsOf } from './rows.ts';

runService({ rows: rowsOf(new Orders()) });

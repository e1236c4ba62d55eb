/* A CSV export of any length, written at the pace of its reader. The orders come from a file with a JSON object
   in each line, ORDERS_FILE; put the cursor of your database in the place of `readOrders`. */
import { open } from 'node:fs/promises';
import { get, needs, runService, scope } from 'gatehouse-http';

const { ORDERS_FILE = 'orders.ndjson' } = process.env;
const COLUMNS = ['id', 'item', 'quantity', 'note'];
const CHUNK_CHARACTERS = 65_536;

async function* readOrders() {
  const file = await open(ORDERS_FILE);
  let count = 0;
  let rest = '';
  try {
    // Closes the file at its end, when a line is no JSON, and when the client leaves.
    for await (const text of file.createReadStream({ encoding: 'utf8' })) {
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      for (const line of lines) yield JSON.parse(line);
      count += lines.length;
    }
    if (rest !== '') throw new Error('the last line is not complete');
  } finally {
    console.log(JSON.stringify({ message: 'export ended', count }));
  }
}

/** A spreadsheet runs these as formulas, in quotes or not: an apostrophe makes them text (OWASP, "CSV Injection"). */
const FORMULA = /^\s*[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]/;

/** RFC 4180 §2(5) to §2(7) */
function cellOf(value) {
  if (typeof value === 'number') return String(value);
  const text = String(value ?? '').replaceAll('"', '""');
  return FORMULA.test(text) ? `"'${text}"` : `"${text}"`;
}

const lineOf = (cells) => `${cells.map(cellOf).join(',')}\r\n`;

/** A chunk for many lines: each costs a write. Nothing is read while the client does not. */
async function* csvOf(orders) {
  let text = lineOf(COLUMNS);
  for await (const order of orders) {
    text += lineOf(COLUMNS.map((column) => order[column]));
    if (text.length < CHUNK_CHARACTERS) continue;
    yield Buffer.from(text);
    text = '';
  }
  yield Buffer.from(text);
}

const routes = [
  get('/api/orders/export', needs(scope('read:orders')), () => new Response(csvOf(readOrders()), {
    headers: {
      'Content-Type': 'text/csv; charset=utf-8; header=present',
      'Content-Disposition': 'attachment; filename="orders.csv"',
    },
  })),
];

await runService({ routes });

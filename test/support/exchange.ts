/* An exchange without a connection, for tests of what happens between a request and its response. */
import type { ServerResponse } from 'node:http';
import { Exchange, type RequestStream } from '../../src/service/request/exchange.ts';

export interface TestExchange {
  readonly exchange: Exchange;
  /** How often a response was made the last of the connection. */
  readonly endings: () => number;
}

/** `request` and `response` need only the members that the test reads. */
export function exchangeOf(request: object, response: object, isEnding = false): TestExchange {
  let endings = 0;

  const endReading = () => {
    endings += 1;
  };

  const exchange = new Exchange(
    request as RequestStream,
    response as ServerResponse,
    { isEnding, isFinishing: false, endReading },
    0,
  );
  return { exchange, endings: () => endings };
}

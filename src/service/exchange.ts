// One request on its way through the pipeline: what was learnt of it, and the signal that tells its handler
// to give up.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isGone } from '../reply/write.ts';
import type { Row } from '../routes/row.ts';
import type { Learnt } from './observe.ts';

export class Exchange implements Learnt {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly arrivedAt: number;
  crossOrigin: Learnt['crossOrigin'];
  accesses: Learnt['accesses'];
  row: Row | undefined;
  kid: string | undefined;
  issuerName: string | undefined;
  freshNonce: string | undefined;
  reason: Learnt['reason'];
  failure: unknown;
  #controller: AbortController | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, arrivedAt: number) {
    this.request = request;
    this.response = response;
    this.arrivedAt = arrivedAt;
  }

  /** Aborts when the client has gone before the reply was written, and by `giveUp`. */
  get signal(): AbortSignal {
    if (this.#controller !== undefined) return this.#controller.signal;

    const { request, response } = this;
    const controller = new AbortController();
    this.#controller = controller;
    if (isGone(request, response)) controller.abort();
    // `close` of the request comes too when all is well.
    response.once('close', () => {
      if (!response.writableFinished) controller.abort();
    });
    return controller.signal;
  }

  giveUp(): void {
    // A handler may ask for it only now.
    void this.signal;
    this.#controller?.abort();
  }
}

// Types alone: what a gate's methods take and return.
import type { ServerResponse } from 'node:http';
import type { Caller } from '../../verify/caller.ts';
import type { RawRequest } from '../../verify/request/facts.ts';
import type { Field } from '../replies/reply.ts';
import type { Access, DecidedAccess } from '../rules/access.ts';

/** A request of Node, or an object like it. `rawHeaders` must be as the client sent them. */
export interface GateRequest extends RawRequest {
  /** Used only to detect an adapter that leaves `rawHeaders` empty. */
  readonly headers?: object | undefined;
  /** Node's socket, which has the client's address and certificate, and shows when the client has left. */
  readonly socket?: unknown;
}

/** A Fetch `Request`. From its URL, the gate reads only host, path and query. */
export interface FetchRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Iterable<readonly [name: string, value: string]>;
  readonly signal?: unknown;
  readonly originalUrl?: undefined;
}

/**
 * A caller who may pass. `headers` are for your server's response, unless `admit` has set them: a
 * `DPoP-Nonce` when one is pending (RFC 9449 §9).
 */
export type Admission<Admitted> = Readonly<{ caller: Admitted; headers: Field[] }>;

/**
 * The response to a caller who may not pass. `body` is JSON text, or `null` for 204, as Fetch demands. Each
 * scheme has its own `WWW-Authenticate` field.
 */
export type RefusalReply = Readonly<{ status: number; headers: Field[]; body: string | null }>;

/** Without strict null checks, TypeScript cannot narrow a verdict, so this has `headers` too. */
type Refusal = Readonly<{ refusal: RefusalReply; caller?: undefined; headers?: undefined }>;

/** Test `verdict.refusal`. */
export type Verdict<Admitted> = (Admission<Admitted> & Readonly<{ refusal?: undefined }>) | Refusal;

/** Test `authorization.refusal`. */
export type Authorization<Admitted> = Readonly<{ caller: Admitted; refusal?: undefined }> | Refusal;

export interface GateMethods {
  /**
   * Checks a request. Resolves to the caller, or to the refusal to send. Rejects with a `TypeError` for
   * anything but a request and an access.
   *
   * @example const verdict = await gate.check(request, needs(scope('read:orders')));
   */
  readonly check: <Admitted>(
    request: GateRequest | FetchRequest,
    access: DecidedAccess<Admitted>,
  ) => Promise<Verdict<Admitted>>;

  /**
   * Checks a further access for an admitted caller, such as the scopes that a body asks for. Checks neither
   * token nor proof again. Returns a promise if the access has a `decision`; `await` fits both. Throws a
   * `TypeError` for anything but a verified `Caller`, and for `open` or anything but an access.
   *
   * @example const { refusal } = gate.authorize(caller, needs(scope('write:orders')));
   */
  readonly authorize: {
    <Admitted>(caller: Caller<unknown>, access: Access<Admitted>): Authorization<Admitted>;
    <Admitted>(caller: Caller<unknown>, access: DecidedAccess<Admitted>): Promise<Authorization<Admitted>>;
  };

  /**
   * Checks a request and sends the refusal, if any, or sets a pending `DPoP-Nonce`. Resolves to `undefined`
   * if it sent one, or if the response had already begun. Rejects as `check` does, and for a response
   * that is not of Node.
   *
   * @example const admission = await gate.admit(request, response, needs(scope('read:orders')));
   */
  readonly admit: <Admitted>(
    request: GateRequest,
    response: ServerResponse,
    access: DecidedAccess<Admitted>,
  ) => Promise<Admission<Admitted> | undefined>;
}

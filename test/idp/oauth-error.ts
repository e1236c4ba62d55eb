/** The error responses of the token endpoint (RFC 6749 §5.2). */
import { json, type Reply } from './reply.ts';

/**
 * Values of `error`: RFC 6749 §5.2, `access_denied` as Auth0 sends it, `invalid_dpop_proof` of RFC 9449 §5.
 */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'access_denied'
  | 'invalid_dpop_proof';

/** A refused token request. `description` tells the caller's developer what to change. */
export class OAuthError extends Error {
  readonly code: OAuthErrorCode;
  readonly status: number;
  readonly #fields: Readonly<Record<string, string>>;

  constructor(code: OAuthErrorCode, description: string, status = 400, fields = {}) {
    super(description);
    this.code = code;
    this.status = status;
    this.#fields = fields;
  }

  toReply(): Reply {
    const headers = { 'Cache-Control': 'no-store', ...this.#fields };
    return json(this.status, { error: this.code, error_description: this.message }, headers);
  }
}

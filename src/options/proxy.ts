// Connects to the provider through a forward proxy, which learns only the provider's host name: fetch.ts runs
// TLS inside the tunnel. Promises: no byte of the proxy counts as the provider's.
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { isDecodable, requireGood, textMatching, Part, type Rule } from '../verify/base/option.ts';
import type { ConnectPart } from '../verify/options.ts';
import type { Limits } from '../verify/keys/fetch.ts';
import { FetchError } from '../verify/keys/jwks.ts';

/** Refuses backslashes, which URL reads as slashes. */
export const proxyUrl: Rule = textMatching(
  /^http:\/\/([^\s:@/?#\\]+(:[^\s@/?#\\]*)?@)?([\w.-]+|\[[0-9a-f:.]+\])(:[1-9]\d*)?\/?$/i,
  'must be http://[user[:password]@]host[:port], with special characters as %XX',
  isDecodable,
);

/**
 * Connects to the provider through a forward proxy: for the option `connect`. `url` is
 * `http://[user[:password]@]host[:port]`. Throws a `TypeError` for any other form.
 *
 * @example createGate({ domain, audience, connect: throughProxy('http://proxy.internal:3128') });
 */
export function throughProxy(url: string): ConnectPart {
  requireGood('throughProxy', proxyUrl, url);
  return Part.make('connect', (address, limits) => createTunnel(url, address, limits));
}

/** Rejects with `FetchError`. */
function createTunnel(proxy: string, { hostname, port }: URL, { signal, bytes }: Limits): Promise<Socket> {
  const { username, password } = new URL(proxy);
  const credentials = Buffer.from(decodeURIComponent(`${username}:${password}`)).toString('base64');
  const target = `${hostname}:${port || 443}`;
  const headers = {
    Host: target,
    // RFC 9110 §11.7.2, RFC 7617 §2
    ...(username !== '' && { 'Proxy-Authorization': `Basic ${credentials}` }),
  };
  // No shared connection, and no other credentials.
  const options = { agent: false, auth: null, signal };
  return new Promise((resolve, reject) => {
    request(proxy, { method: 'CONNECT', path: target, headers, ...options })
      .on('socket', (socket) => bytes.watch(socket))
      .on('connect', ({ statusCode }, socket, head) => {
        // Stricter: RFC 9110 §9.3.6 allows any 2xx. Bytes in `head` come from the proxy.
        if (statusCode === 200 && head.length === 0) return resolve(socket);

        socket.destroy();
        reject(new FetchError('proxy-refused', statusCode));
      })
      .on('error', ({ code }: NodeJS.ErrnoException) => reject(new FetchError('proxy-failed', code)))
      .end();
  });
}

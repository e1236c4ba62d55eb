// A way through a forward proxy. Trusts the proxy with the address of the provider and no more: what goes
// through is for the provider's TLS to check, which fetch.ts lays over it. Promises: no byte that the proxy
// says on its own is taken for the provider's. Does not bound its time: the signal does.
import { request } from 'node:http';
import type { Connect } from '../verify/keys/fetch.ts';
import { FetchError } from '../verify/keys/jwks.ts';

/** Connects through `proxy`, `http://[user[:password]@]host[:port]`. */
export const connectThrough =
  (proxy: string): Connect =>
  (address, signal) =>
    openTunnel(proxy, address, signal);

/** A connection to the host and port of an address. Rejects with `FetchError`. */
function openTunnel(proxy: string, { hostname, port }: URL, signal: AbortSignal): Promise<object> {
  const { username, password } = new URL(proxy);
  const credentials = Buffer.from(decodeURIComponent(`${username}:${password}`)).toString('base64');
  const target = `${hostname}:${port || 443}`;
  const headers = {
    Host: target,
    // RFC 9110 §11.7.2, RFC 7617 §2
    ...(username !== '' && { 'Proxy-Authorization': `Basic ${credentials}` }),
  };
  // A connection of its own, and no credentials but those above.
  const way = { agent: false, auth: null, signal };
  return new Promise((resolve, reject) => {
    request(proxy, { method: 'CONNECT', path: target, headers, ...way })
      .on('connect', ({ statusCode }, socket, head) => {
        // Stricter: RFC 9110 §9.3.6 takes any 2xx. What a proxy sends on its own is not the provider's.
        if (statusCode === 200 && head.length === 0) return resolve(socket);

        socket.destroy();
        reject(new FetchError('proxy-refused', statusCode));
      })
      .on('error', ({ code }: NodeJS.ErrnoException) => reject(new FetchError('proxy-failed', code)))
      .end();
  });
}

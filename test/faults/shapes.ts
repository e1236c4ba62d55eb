/* Requests that no well-behaved client sends, each in one piece, and the expected status (docs/how-a-request-is-checked.md,
   RFC 9112). */
import { get, HOST, post } from '../support/listener.ts';

export interface Shape {
  readonly bytes: string;
  readonly status: number;
}

const shape = (bytes: string, status = 400): Shape => ({ bytes, status });

const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const AUTHORIZATION = 'Authorization: Bearer a\r\n';
const LAST_CHUNK = '0\r\n\r\n';
const SMUGGLED = `GET /api/private HTTP/1.1\r\n${HOST}\r\n`;

export const SHAPES: Readonly<Record<string, Shape>> = {
  'two lengths': shape(post('Content-Length: 1\r\nContent-Length: 2\r\n', 'ab')),
  'a length with chunking': shape(post(`Content-Length: 5\r\n${CHUNKED}`, LAST_CHUNK + SMUGGLED)),
  'chunking with a length': shape(post(`${CHUNKED}Content-Length: 5\r\n`, LAST_CHUNK + SMUGGLED)),
  'chunking that is not the last coding': shape(
    post('Transfer-Encoding: chunked, identity\r\n', LAST_CHUNK + SMUGGLED),
  ),
  'a space before the colon': shape(post('Transfer-Encoding : chunked\r\n', LAST_CHUNK + SMUGGLED)),
  'a folded line': shape(get(`${HOST}X: a\r\n b\r\n`)),
  'bare line feeds': shape(`GET /healthz HTTP/1.1\n${HOST}\n`),
  'a null byte in the target': shape(`GET /healthz\0 HTTP/1.1\r\n${HOST}\r\n`),
  'a null byte in a name': shape(get(`${HOST}X\0: a\r\n`)),
  'a null byte in a value': shape(get(`${HOST}X: a\0b\r\n`)),
  'the absolute form': shape(`GET http://api.test/api/public HTTP/1.1\r\n${HOST}\r\n`),
  'the asterisk form': shape(`OPTIONS * HTTP/1.1\r\n${HOST}\r\n`),
  CONNECT: shape(`CONNECT api.test:443 HTTP/1.1\r\n${HOST}\r\n`),
  'HTTP/0.9': shape('GET /healthz\r\n\r\n'),
  'an HTTP/2 preface': shape('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  'a TLS greeting': shape('\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'),
  'no Host': shape(get('')),
  'two Hosts': shape(get(`${HOST}Host: other.test\r\n`)),
  'another expectation': shape(get(`${HOST}Expect: 200-ok\r\n`), 417),
  'a field of 20 kB': shape(get(`${HOST}X: ${'x'.repeat(20_000)}\r\n`), 431),
  'a target of 20 kB': shape(`GET /${'x'.repeat(20_000)} HTTP/1.1\r\n${HOST}\r\n`, 431),
  // Node counts only names and values.
  'many fields of 20 kB in all': shape(
    get(`${HOST}Connection: close\r\n${`x: ${'y'.repeat(9)}\r\n`.repeat(2_000)}`),
    431,
  ),
  'two Authorization fields with 2,500 others between': shape(
    `GET /api/private HTTP/1.1\r\n${HOST}Connection: close\r\n${AUTHORIZATION}${'x:\r\n'.repeat(2_500)}${AUTHORIZATION}\r\n`,
    431,
  ),
  'an offer to upgrade': shape(get(`${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n`), 200),
};

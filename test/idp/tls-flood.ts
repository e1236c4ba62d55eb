/**
 * TLS 1.3 records that carry no data: an endless stream of new session tickets or of new keys. No server of
 * Node can send them, so the records are made here (RFC 9846 §4.6, §5.2).
 */
import { createCipheriv, createHmac, randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { TLSSocket, type SecureContextOptions, createSecureContext } from 'node:tls';

export type Record = 'ticket' | 'key update';

const RECORDS_AT_ONCE = 200;
const HANDSHAKE = 22;

/** RFC 9846 §7.1, for one block of SHA-256. */
function expandLabel(secret: Buffer, label: string, length: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.from([0, length, name.length]), name, Buffer.from([0, 1])]);
  return createHmac('sha256', secret).update(info).digest().subarray(0, length);
}

/** Encrypts records with the secret of the server. */
class RecordWriter {
  #secret: Buffer;
  #sequence: number;

  constructor(secret: Buffer, sequence: number) {
    this.#secret = secret;
    this.#sequence = sequence;
  }

  /** RFC 9846 §5.2, §5.3 */
  #encrypt(message: Buffer): Buffer {
    const nonce = Buffer.from(expandLabel(this.#secret, 'iv', 12));
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ this.#sequence) >>> 0, 8);
    this.#sequence += 1;
    const head = Buffer.from([23, 3, 3, 0, 0]);
    head.writeUInt16BE(message.length + 1 + 16, 3);
    const cipher = createCipheriv('aes-128-gcm', expandLabel(this.#secret, 'key', 16), nonce).setAAD(head);
    const sealed = cipher.update(Buffer.concat([message, Buffer.from([HANDSHAKE])]));
    return Buffer.concat([head, sealed, cipher.final(), cipher.getAuthTag()]);
  }

  /** RFC 9846 §4.6.1 */
  ticket(): Buffer {
    const ticket = randomBytes(1_000);
    const body = Buffer.concat([
      Buffer.from([0, 0, 1, 0, 1, 2, 3, 4, 1, 0, ticket.length >> 8, ticket.length & 255]),
      ticket,
      Buffer.from([0, 0]),
    ]);
    return this.#encrypt(Buffer.concat([Buffer.from([4, 0, body.length >> 8, body.length & 255]), body]));
  }

  /** RFC 9846 §4.6.3 */
  keyUpdate(): Buffer {
    const record = this.#encrypt(Buffer.from([24, 0, 0, 1, 0]));
    this.#secret = expandLabel(this.#secret, 'traffic upd', 32);
    this.#sequence = 0;
    return record;
  }
}

/**
 * Speaks TLS on a connection, writes these responses to as many requests, and after the next one sends such
 * records for as long as the connection is open.
 */
export function floodWithRecords(
  socket: Socket,
  identity: SecureContextOptions,
  kind: Record,
  responses: readonly string[] = [],
): void {
  const secureContext = createSecureContext({
    ...identity,
    minVersion: 'TLSv1.3',
    ciphers: 'TLS_AES_128_GCM_SHA256',
  });
  const pipe = new Duplex({
    read() {},
    write(chunk: Buffer, _, done) {
      socket.write(chunk, () => done());
    },
  });
  socket.on('data', (chunk) => pipe.push(chunk));
  const secure = new TLSSocket(pipe as Socket, { isServer: true, secureContext });

  let secret: Buffer | undefined;
  secure.on('keylog', (line) => {
    const [, hex] = /^SERVER_TRAFFIC_SECRET_0 \w+ (\w+)/.exec(String(line)) ?? [];
    if (hex !== undefined) secret = Buffer.from(hex, 'hex');
  });

  const left = [...responses];

  const answer = () => {
    const response = left.shift();
    if (response !== undefined) {
      secure.write(response);
      return;
    }

    secure.off('data', answer);
    // The server's own two tickets are out once it has written, and this record comes after both.
    secure.write('HTTP/1.1 103 Early Hints\r\n\r\n', () => {
      const writer = new RecordWriter(secret!, 3 + responses.length);

      const send = () => {
        if (socket.destroyed) return;
        const records = Array.from({ length: RECORDS_AT_ONCE }, () =>
          kind === 'ticket' ? writer.ticket() : writer.keyUpdate(),
        );
        socket.write(Buffer.concat(records), () => setImmediate(send));
      };

      send();
    });
  };

  secure.on('error', () => {}).on('data', answer);
}

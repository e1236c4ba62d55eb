// Bare keep-alive connections that hold one request each and look at every response. Cheap enough to outrun the servers.
import { connect } from 'node:net';

/** The length in characters of the whole response that `text` begins with, or 0 if it is not all there. */
function responseLength(text) {
  const headerEnd = text.indexOf('\r\n\r\n');
  if (headerEnd < 0) return 0;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, headerEnd));
  if (length === null) return chunkedLength(text, headerEnd);
  const end = headerEnd + 4 + Number(length[1]);
  return text.length >= end ? end : 0;
}

const LAST_CHUNK = '\r\n0\r\n\r\n';
/** The same for a response in chunks (RFC 9112 §7.1) without trailers, whose short texts hold nothing like the last chunk. */
function chunkedLength(text, headerEnd) {
  const end = text.indexOf(LAST_CHUNK, headerEnd + 2);
  return end < 0 ? 0 : end + LAST_CHUNK.length;
}

/** A connection; `onAnswer(connection)` is called when the response to `send(text)` is there and is the `expected` one. */
async function open(port, { status, sample }, onResponse) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  const start = `HTTP/1.1 ${status} `;
  let received = '';
  let isDone = false;
  const end = () => {
    isDone = true;
    socket.destroy();
  };
  const connection = { send: (text) => socket.write(text, 'latin1'), end, dueAt: 0 };
  socket.setEncoding('latin1');
  socket.on('data', (chunk) => {
    received = received === '' ? chunk : received + chunk;
    const length = responseLength(received);
    if (length === 0) return;
    if (length !== received.length || !received.startsWith(start) || !received.includes(sample)) {
      throw new Error(`expected ${status} with ${sample}, got ${received}`);
    }
    received = '';
    onResponse(connection);
  });
  socket.on('close', () => { if (!isDone) throw new Error('the server closed a connection'); });
  return connection;
}

export const openAll = (count, port, expected, onResponse) =>
  Promise.all(Array.from({ length: count }, () => open(port, expected, onResponse)));

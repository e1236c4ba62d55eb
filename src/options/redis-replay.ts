// The memory of used proofs that replicas share (RFC 9449 §11.1): one Redis or Valkey, spoken to in RESP2.
// Trusts its word. Promises: a proof is new only by a reply of the store to it; all else makes it
// `unavailable`, at once or a second after it was sent. Follows neither Cluster nor Sentinel, and does not
// check that the store forgets nothing before its time: its operator does.
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Clock } from '../verify/base/clock.ts';
import { printable, type Log } from '../verify/base/events.ts';
import { lookupOnce } from '../verify/keys/lookup.ts';
import { hashProof, type ReplayStore, type ReplayVerdict } from '../verify/dpop/replay.ts';

const GREETING_MILLIS = 2_000;
const REPLY_MILLIS = 1_000;
const MIN_PAUSE_MILLIS = 50;
const MAX_PAUSE_MILLIS = 2_000;
const MAX_REPLY_LENGTH = 64 * 1024;
const MAX_WAITING = 10_000;
/** By so much the clock of another replica may be behind. */
const SPARE_SECONDS = 60;

const VERDICTS = new Map<string, ReplayVerdict>([
  ['+OK', 'new'],
  ['$-1', 'seen'],
]);

/** Any error but those of a server that cannot record: another one may soon have the same name. */
const ERROR_OF_COMMAND = /^-(?!(?:READONLY|LOADING|MASTERDOWN|NOAUTH|CLUSTERDOWN|MOVED)\b)/;

/** Whoever may not even ask has been let in all the same. */
const GREETING = /^(?:\+PONG$|-NOPERM\b)/;

/**
 * Takes the reply to a command, or '' when there will be none. Whether the connection may go on after it.
 */
type Settle = (reply: string) => boolean;

/** A command that has no reply yet. */
type Command = Readonly<{ sentAt: number; settle: Settle }>;

/**
 * A store at `redis://[[user]:password@]host[:port][/db]`, or `rediss://` for TLS. It connects at once, and
 * again whenever the connection is lost.
 */
export function createSharedReplayStore(address: string, clock: Clock, log: Log): ReplayStore {
  const url = new URL(address);
  let state: 'lost' | 'ready' | 'closed' = 'lost';
  /**
   * Not once a proof was refused: a server that cannot record may greet well, again and again. Then only a
   * verdict is news, and only a verdict shortens the pause.
   */
  let mayRecord = true;
  let told = '';
  let pauseMillis = MIN_PAUSE_MILLIS;
  let cancelTimer = () => {};

  // Of the present connection: the commands without a reply, the oldest first; what is not a whole reply
  // yet; why it ends.
  const waiting: Command[] = [];
  let socket: Socket;
  let received: string;
  let flaw: string;

  /** Only what is news. */
  const tell: Log = (event, fields) => {
    if (event !== told) log(event, fields);
    told = event;
  };

  const giveUp = () => end('timeout');
  open();

  function open() {
    received = '';
    flaw = 'closed';
    cancelTimer = clock.after(GREETING_MILLIS, giveUp);
    socket = openSocket(url, greet).setEncoding('latin1');
    socket.unref().on('data', read);
    socket.on('error', ({ code = flaw }: NodeJS.ErrnoException) => end(code));
    socket.on('close', lose);
  }

  function greet() {
    socket.setNoDelay();
    const { username, password, pathname } = url;
    const commands = [
      ['AUTH', username, password],
      ['SELECT', pathname.replace(/\/0*/, '')],
    ];
    for (const command of commands) {
      const words = command.filter(Boolean).map(decodeURIComponent);
      if (words.length > 1) send(words, (reply) => reply === '+OK');
    }

    send(['PING'], (reply) => {
      if (!GREETING.test(reply)) return false;

      state = 'ready';
      if (mayRecord) tell('replay store ready', {});
      return true;
    });
  }

  /** Commands of one turn go out in one write. */
  function send(words: readonly string[], settle: Settle) {
    if (socket.writableCorked === 0) {
      socket.cork();
      setImmediate(() => socket.uncork());
    }
    socket.write(encode(words));
    waiting.push({ sentAt: clock.monotonic(), settle });
    if (waiting.length === 1) expectReply();
  }

  function read(text: string) {
    const lines = (received + text).split('\r\n');
    if (lines.some(({ length }) => length > MAX_REPLY_LENGTH)) return end('reply-refused');

    received = lines.pop() ?? '';
    for (const line of lines) {
      if (waiting.shift()?.settle(line)) continue;

      const [, word = 'reply-refused'] = /^-([A-Z]+)/.exec(line) ?? [];
      return end(word);
    }
    if (lines.length > 0) expectReply();
  }

  /** Counted from the sending of the oldest: from the last reply, the thousandth could wait for minutes. */
  function expectReply() {
    // Until then all of the greeting has one time.
    if (state !== 'ready') return;

    cancelTimer();
    const [oldest] = waiting;
    if (oldest === undefined) return;

    cancelTimer = clock.after(oldest.sentAt + REPLY_MILLIS - clock.monotonic(), giveUp);
  }

  function end(reason: string) {
    flaw = reason;
    socket.destroy();
  }

  function lose() {
    cancelTimer();
    for (const { settle } of waiting.splice(0)) settle('');
    if (state === 'closed') return;

    state = 'lost';
    // Jitter, so that replicas that lost the store together do not come back together.
    cancelTimer = clock.after(pauseMillis * (0.5 + Math.random() / 2), open);
    pauseMillis = Math.min(MAX_PAUSE_MILLIS, pauseMillis * 2);
    tell('replay store lost', { reason: printable(flaw) });
  }

  return {
    record(thumbprint, jti, expiresAt, nowSeconds) {
      if (state !== 'ready' || waiting.length === MAX_WAITING) return 'unavailable';

      const key = `gatehouse:dpop:${hashProof(thumbprint, jti, 'base64url')}`;
      // Relative, by this clock: by its own the store might take the proof for too old, and record nothing.
      const seconds = Math.max(1, Math.ceil(expiresAt - nowSeconds) + 1) + SPARE_SECONDS;
      return new Promise((resolve) => {
        send(['SET', key, '1', 'NX', 'EX', String(seconds)], (reply) => {
          const verdict = VERDICTS.get(reply);
          resolve(verdict ?? 'unavailable');
          if (verdict === undefined) {
            mayRecord &&= reply === '';
            return ERROR_OF_COMMAND.test(reply);
          }

          mayRecord = true;
          pauseMillis = MIN_PAUSE_MILLIS;
          tell('replay store ready', {});
          return true;
        });
      });
    },

    gauge: () => ['gatehouse_replay_store_up', Number(state === 'ready')],

    close() {
      state = 'closed';
      cancelTimer();
      socket.destroy();
    },
  };
}

/** Over TLS it is open once the certificate has been found good. */
function openSocket({ protocol, hostname, port }: URL, opened: () => void) {
  const host = hostname.replace(/^\[|\]$/g, '');
  const options = {
    host,
    port: Number(port || 6379),
    lookup: lookupOnce,
    // RFC 6066 §3: an address is not a server name.
    servername: isIP(host) === 0 ? host : '',
    // Said aloud, so that NODE_TLS_REJECT_UNAUTHORIZED=0 cannot turn it off.
    rejectUnauthorized: true,
  };
  return protocol === 'rediss:' ? connectTls(options, opened) : connect(options, opened);
}

/** A command as RESP2 has it: an array of texts, each with its length in bytes. */
function encode(words: readonly string[]) {
  const texts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}`);
  return [`*${words.length}`, ...texts, ''].join('\r\n');
}

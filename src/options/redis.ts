// A replay store that replicas share (RFC 9449 §11.1): one Redis or Valkey server, over RESP2. Trusts the
// server. Promises: only the server's reply makes a proof `new`; without one it is `unavailable` within a
// second. Does not follow Cluster or Sentinel, or check that the server keeps keys until they expire.
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Clock } from '../verify/base/clock.ts';
import { printable, type Log } from '../verify/base/events.ts';
import { isDecodable, requireGood, textMatching, type Rule } from '../verify/base/option.ts';
import { Part } from '../verify/base/part.ts';
import type { ReplayStorePart } from '../verify/options.ts';
import { hashProof, keepSeconds, type ReplayStore, type ReplayVerdict } from '../verify/dpop/replay.ts';

const GREETING_MILLIS = 2_000;
const REPLY_MILLIS = 1_000;
const MIN_PAUSE_MILLIS = 50;
const MAX_PAUSE_MILLIS = 2_000;
const MAX_REPLY_LENGTH = 64 * 1024;
const MAX_WAITING = 10_000;

const VERDICTS = new Map<string, ReplayVerdict>([
  ['+OK', 'new'],
  ['$-1', 'seen'],
]);

/** After the errors named here, reconnecting may help. All others concern one command. */
const ERROR_OF_COMMAND = /^-(?!(?:READONLY|LOADING|MASTERDOWN|NOAUTH|CLUSTERDOWN|MOVED)\b)/;

/** `-NOPERM` for PING still proves that authentication succeeded. */
const GREETING = /^(?:\+PONG$|-NOPERM\b)/;

/** Receives the reply, or ''. Returns whether the connection may go on. */
type Settle = (reply: string) => boolean;

type Command = Readonly<{ sentAt: number; settle: Settle }>;

export const storeUrl: Rule = textMatching(
  /^rediss?:\/\/([^\s:@/?#]*:[^\s@/?#]+@)?([\w.-]+|\[[0-9a-f:.]+\])(:[1-9]\d*)?(\/\d{0,9})?$/i,
  'must be redis://[[user]:password@]host[:port][/database], or rediss://, with special characters as %XX',
  isDecodable,
);

/**
 * Makes a replay store that replicas share, for the option `replayStore`. Each gate and service has a
 * connection of its own. Throws a `TypeError` for anything but
 * `redis://[[user]:password@]host[:port][/database]` or `rediss://`.
 *
 * @example createGate({ domain, audience, replayStore: redisReplayStore('redis://store.internal') });
 */
export function redisReplayStore(url: string): ReplayStorePart {
  requireGood('redisReplayStore', storeUrl, url);
  return Part.make('replayStore', (clock: Clock, log: Log) => createSharedReplayStore(url, clock, log), true);
}

/**
 * Connects at once to `redis://[[user]:password@]host[:port][/db]`, or `rediss://` for TLS, and again
 * whenever the connection is lost.
 */
export function createSharedReplayStore(address: string, clock: Clock, log: Log): ReplayStore {
  const url = new URL(address);
  let state: 'lost' | 'ready' | 'closed' = 'lost';
  /** False once the server refused a proof. Then only a verdict, not a greeting, shows that it can record. */
  let mayRecord = true;
  let lastLogged = '';
  let pauseMillis = MIN_PAUSE_MILLIS;
  let cancelTimer = () => {};

  /** Commands without a reply, oldest first. */
  const waiting: Command[] = [];
  let socket: Socket;
  /** An incomplete reply. */
  let received: string;
  let reasonOfEnd: string;

  let tellOutcome = () => {};
  const firstOutcome = new Promise<void>((resolve) => {
    tellOutcome = resolve;
  });

  const logChange: Log = (event, fields) => {
    if (event !== lastLogged) log(event, fields);
    lastLogged = event;
    tellOutcome();
  };

  const giveUp = () => end('timeout');
  connect();

  function connect() {
    received = '';
    reasonOfEnd = 'closed';
    cancelTimer = clock.after(GREETING_MILLIS, giveUp);
    socket = connectTo(url, greet).setEncoding('latin1');
    socket.unref().on('data', read);
    socket.on('error', ({ code = reasonOfEnd }: NodeJS.ErrnoException) => end(code));
    socket.on('close', lose);
  }

  function greet() {
    socket.setNoDelay();
    const { username, password, pathname } = url;
    const credentials = [username, password].filter(Boolean).map(decodeURIComponent);
    const database = pathname.replace(/\/0*/, '');
    if (credentials.length > 0) send(['AUTH', ...credentials], isOk);
    if (database !== '') send(['SELECT', database], isOk);

    send(['PING'], (reply) => {
      if (!GREETING.test(reply)) return false;

      state = 'ready';
      if (mayRecord) logChange('replay store ready', {});
      return true;
    });
  }

  /** One write for all commands of a turn. */
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
      const mayGoOn = waiting.shift()?.settle(line);
      if (mayGoOn) continue;

      const [, word = 'reply-refused'] = /^-([A-Z]+)/.exec(line) ?? [];
      return end(word);
    }
    if (lines.length > 0) expectReply();
  }

  /** Counts from the oldest command: counting from the last reply, a queue could wait for minutes. */
  function expectReply() {
    if (state !== 'ready') return;

    cancelTimer();
    const [oldest] = waiting;
    if (oldest === undefined) return;

    cancelTimer = clock.after(oldest.sentAt + REPLY_MILLIS - clock.monotonic(), giveUp);
  }

  function end(reason: string) {
    reasonOfEnd = reason;
    socket.destroy();
  }

  function lose() {
    cancelTimer();
    for (const { settle } of waiting.splice(0)) settle('');
    if (state === 'closed') return;

    state = 'lost';
    // Jitter: replicas must not reconnect together.
    cancelTimer = clock.after(pauseMillis * (0.5 + Math.random() / 2), connect);
    pauseMillis = Math.min(MAX_PAUSE_MILLIS, pauseMillis * 2);
    logChange('replay store lost', { reason: printable(reasonOfEnd) });
  }

  return {
    record(thumbprint, jti, expiresAtSeconds, nowSeconds) {
      if (state !== 'ready' || waiting.length === MAX_WAITING) return 'unavailable';

      const key = `gatehouse:dpop:${hashProof(thumbprint, jti, 'base64url')}`;
      const seconds = keepSeconds(expiresAtSeconds, nowSeconds);
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
          logChange('replay store ready', {});
          return true;
        });
      });
    },

    state: () => ({ isUp: state === 'ready' }),
    firstOutcome: () => firstOutcome,

    close() {
      state = 'closed';
      cancelTimer();
      socket.destroy();
    },
  };
}

const isOk = (reply: string) => reply === '+OK';

/** Over TLS, calls `opened` once the certificate is verified. */
function connectTo({ protocol, hostname, port }: URL, opened: () => void) {
  const host = hostname.replace(/^\[|\]$/g, '');
  const options = {
    host,
    port: Number(port || 6379),
    // RFC 6066 §3: no addresses.
    servername: isIP(host) === 0 ? host : '',
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED=0 cannot turn it off.
    rejectUnauthorized: true,
  };
  return protocol === 'rediss:' ? connectTls(options, opened) : connect(options, opened);
}

function encode(words: readonly string[]) {
  const texts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}`);
  return [`*${words.length}`, ...texts, ''].join('\r\n');
}

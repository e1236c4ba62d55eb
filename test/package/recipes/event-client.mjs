/* Reads an event stream as a browser's `EventSource` does (HTML, "Server-sent events"), with a token, which that
   cannot send. Runs in browsers and in Node, and needs no package:

   for await (const { event, data, id } of readEvents(url, { getToken, signal })) show(JSON.parse(data));

   `getToken({ isRefused })` resolves to an access token that has not expired: to another one than before if that
   was refused. */

const MOST_CHARACTERS = 1_048_576;
const MOST_WAIT_MILLIS = 30_000;
const MOST_ASKED_SECONDS = 86_400;

/** A connection that is silent for longer is dead: the server says something every 15 s. */
const SILENCE_MILLIS = 45_000;

export class EventStreamError extends Error {
  constructor(message, status) {
    super(message);
    this.name = 'EventStreamError';
    this.status = status;
  }
}

/**
 * Connects again, with a fresh token, whenever the stream ends or fails. Returns at a 204. Throws what `getToken`
 * throws, at a response that another attempt would not change, such as 403, and when `signal` aborts.
 */
export async function* readEvents(url, { getToken, signal, lastEventId = '', retryMillis = 3_000 }) {
  const state = { lastEventId, retryMillis };
  let failures = 0;
  let isRefused = false;
  for (;;) {
    const wasRefused = isRefused;
    const token = await unlessAborted(signal, () => getToken({ isRefused }));
    // From here on, the attempt hears of it.
    signal?.throwIfAborted();
    isRefused = false;
    const attempt = new AbortController();
    const stop = () => attempt.abort(signal.reason);
    signal?.addEventListener('abort', stop);
    let waitMillis = 0;
    try {
      const response = await connect(url, token, state, attempt.signal);
      const { status } = response;
      if (status === 204) return;
      if (status === 200) {
        for await (const event of parse(response, state, attempt)) {
          failures = 0;
          yield event;
          signal?.throwIfAborted();
        }
        failures = 0;
      } else {
        waitMillis = readRefusal(response, wasRefused);
        failures += 1;
      }
      isRefused = status === 401;
    } catch (error) {
      if (signal?.aborted || error instanceof EventStreamError) throw error;
      // The network, or a stream that was cut off.
      failures += 1;
    } finally {
      signal?.removeEventListener('abort', stop);
      attempt.abort();
    }
    if (!isRefused) await wait(Math.max(waitMillis, delayOf(state, failures)), signal);
  }
}

/** Returns how long to wait. */
function readRefusal({ status, headers }, wasRefused) {
  // Once: a second 401 in a row is not about the age of the token.
  const isPassing = status === 401 ? !wasRefused : status === 429 || status >= 500;
  if (!isPassing) throw new EventStreamError(`the server says ${status}`, status);
  return 1_000 * Math.min(Number(headers.get('retry-after')) || 0, MOST_ASKED_SECONDS);
}

function connect(url, token, { lastEventId }, signal) {
  const headers = { Accept: 'text/event-stream', Authorization: `Bearer ${token}` };
  if (lastEventId !== '') headers['Last-Event-ID'] = lastEventId;
  // A redirect would take the token along, or lose it: it is a refusal.
  return fetch(url, { headers, signal, cache: 'no-store', redirect: 'manual' });
}

/** Longer after each failure, and at another moment than the other clients of a server that was down. */
function delayOf({ retryMillis }, failures) {
  const millis = Math.min(Math.max(retryMillis, 1) * 2 ** failures, Math.max(retryMillis, MOST_WAIT_MILLIS));
  return millis * (0.5 + Math.random() / 2);
}

async function wait(millis, signal) {
  let timer;
  const begin = () => new Promise((resolve) => (timer = setTimeout(resolve, millis)));
  await unlessAborted(signal, begin).finally(() => clearTimeout(timer));
}

/** Throws at once when `signal` aborts, or has before. */
async function unlessAborted(signal, begin) {
  signal?.throwIfAborted();
  let stop;
  const aborted = new Promise((_, reject) => {
    stop = () => reject(signal.reason);
    signal?.addEventListener('abort', stop);
  });
  try {
    return await Promise.race([begin(), aborted]);
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

async function* parse({ headers, body }, state, attempt) {
  const isEvents = /^text\/event-stream\s*(;|$)/i.test(headers.get('content-type') ?? '');
  if (!isEvents || body === null) throw new EventStreamError('the response is not an event stream', 200);

  let timer;
  const expectMore = () => {
    clearTimeout(timer);
    timer = setTimeout(() => attempt.abort(new Error('the stream is silent')), SILENCE_MILLIS);
  };

  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  let block = { data: [], length: 0 };
  try {
    for (;;) {
      expectMore();
      const { done, value } = await reader.read();
      clearTimeout(timer);
      // An event without its blank line is incomplete, and comes again.
      if (done) return;

      text += value;
      // A CR at the end may be half of the end of a line.
      const lines = text.split(/\r\n|\r(?!$)|\n/);
      text = lines.pop();
      for (const line of lines) {
        requireShort((block.length += line.length));
        if (line !== '') takeLine(line, block, state);
        else {
          const event = finish(block, state);
          block = { data: [], length: 0 };
          if (event !== undefined) yield event;
        }
      }
      requireShort(block.length + text.length);
    }
  } finally {
    clearTimeout(timer);
  }
}

function requireShort(length) {
  if (length > MOST_CHARACTERS) throw new EventStreamError('an event is too long', 200);
}

function takeLine(line, block, state) {
  const [, name, value = ''] = /^([^:]*)(?:: ?([^]*))?$/.exec(line);
  if (name === 'data') block.data.push(value);
  if (name === 'event') block.event = value;
  if (name === 'id' && !value.includes('\0')) block.id = value;
  if (name === 'retry' && /^\d+$/.test(value)) state.retryMillis = Number(value);
}

function finish({ data, event, id }, state) {
  state.lastEventId = id ?? state.lastEventId;
  if (data.length === 0) return undefined;
  return { event: event || 'message', data: data.join('\n'), id: state.lastEventId };
}

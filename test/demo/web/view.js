/* What the page shows of a response. It makes every element by hand, so that no text of a response can become markup. */
import { claimsOf } from './call.js';

export const byId = (id) => document.getElementById(id);

/** An element with attributes, and texts or elements in it. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

/** Colour and sign say whether a status was expected. They say nothing of the status: a 401 may be just right. */
export const verdict = (isExpected, ...texts) =>
  element('span', { class: isExpected ? 'is-expected' : 'is-unexpected' }, isExpected ? '✓ ' : '✗ ', ...texts);

/** Each challenge of the field on a line of its own. */
const challengesIn = (field) => field.split(/, (?=(?:Bearer|DPoP) )/);

/** The sentence of a refusal, which a client may show to its developer. */
export function reasonIn(response) {
  const challenge = response.headers.get('WWW-Authenticate') ?? '';
  return /error_description="([^"]*)"/.exec(challenge)?.[1];
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}

/** Long enough to be recognised. */
const shorten = (value) => (value.length > 48 ? `${value.slice(0, 36)}…${value.slice(-8)}` : value);

const MINUTE_SECONDS = 60;
const HOUR_SECONDS = 3600;

function durationOf(seconds) {
  if (seconds >= HOUR_SECONDS) return `${Math.round(seconds / HOUR_SECONDS)} h`;
  return seconds >= MINUTE_SECONDS ? `${Math.round(seconds / MINUTE_SECONDS)} min` : `${Math.round(seconds)} s`;
}

/** When a token ends, in words. */
function expiryOf({ exp }) {
  const left = exp - Date.now() / 1000;
  return left > 0 ? `expires in ${durationOf(left)}` : `expired ${durationOf(-left)} ago`;
}

const block = (title, text, note = '') => [
  element('h3', {}, title, element('span', { class: 'note' }, note === '' ? '' : ` ${note}`)),
  element('pre', {}, text),
];

function tokenBlock(token) {
  if (token === undefined) return [];
  const claims = claimsOf(token);
  return block('Token claims', JSON.stringify(claims, undefined, 2), expiryOf(claims));
}

function requestText({ method, path, headers, body }) {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${shorten(value)}`);
  return [`${method} ${path}`, ...fields, ...(body === undefined ? [] : ['', body])].join('\n');
}

function statusLine({ call, response }) {
  const { status, statusText } = response;
  const line = element('p', { class: 'status' }, element('strong', {}, String(status)), ` ${statusText} `);
  if (call.status !== undefined) {
    const isExpected = status === call.status;
    line.append(verdict(isExpected, isExpected ? 'as expected' : `expected ${call.status}`));
  }
  return line;
}

/** The parts of the response, the most important first. */
export function responseParts({ call, request, first, response, body, millis }) {
  const challenge = response.headers.get('WWW-Authenticate');
  const others = [...response.headers].filter(([name]) => name !== 'www-authenticate');
  const meta = `${millis.toFixed(0)} ms`;
  return [
    statusLine({ call, response }),
    element('p', { class: 'what' }, element('code', {}, `${request.method} ${request.path}`), element('span', { class: 'note' }, ` ${meta}`)),
    ...(first === undefined ? [] : [element('p', { class: 'what' }, `Sent twice. The first time: ${first}.`)]),
    ...(call.why === undefined ? [] : [element('p', { class: 'what' }, `Why: ${call.why}.`)]),
    ...(challenge === null ? [] : block('WWW-Authenticate', challengesIn(challenge).join('\n'))),
    ...block('Body', body === '' ? '(none)' : pretty(body)),
    ...block('Sent', requestText(request), request.token === undefined ? '' : 'cut short here'),
    ...tokenBlock(request.token),
    ...(request.proof === undefined ? [] : block('Proof claims', JSON.stringify(request.proof, undefined, 2))),
    ...block('Other fields', others.map(([name, value]) => `${name}: ${value}`).join('\n'), 'that a page may read'),
  ];
}

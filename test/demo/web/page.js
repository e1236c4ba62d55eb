/* The demo's page: plays the thief of a token, sends each call to the service, and shows the responses. */
import { demo, requestFor, send } from './call.js';
import { curlLine } from './curl.js';
import { byId, element, reasonIn, responseParts, verdict } from './view.js';

const { profile, service, tokens, groups } = demo;

const panel = byId('response');
const side = byId('side');

/** Where there is no room beside the calls, the response stands under what was sent. */
const isNarrow = matchMedia('(max-width: 62rem)');
let last;

/** Tells whoever hears the page. */
const say = (text) => {
  byId('said').textContent = text;
};

function place() {
  const home = isNarrow.matches && last !== undefined ? last.owner : side;
  if (panel.parentElement !== home) home.append(panel);
}

/** Makes a change above or below a button, which stays under the pointer. */
function keepInPlace(button, change) {
  const before = button.getBoundingClientRect().top;
  change();
  scrollBy({ top: button.getBoundingClientRect().top - before, behavior: 'instant' });
}

/** Marks what was sent, and shows the parts beside it or under it. */
function showParts(owner, button, sent, parts) {
  keepInPlace(button, () => {
    last?.owner.removeAttribute('aria-current');
    owner.setAttribute('aria-current', 'true');
    last = { owner, sent };
    byId('shown').replaceChildren(...parts);
    byId('copy').hidden = sent === undefined;
    byId('copied').textContent = '';
    panel.scrollTop = 0;
    place();
  });
}

function showSent(owner, button, sent) {
  showParts(owner, button, sent, responseParts(sent));
  const { request, first } = sent;
  const { status } = sent.response;
  const earlier = first === undefined ? '' : ` Sent twice. The first time: ${first}.`;
  say(`${status} for ${request.method} ${request.path}. ${reasonIn(sent.response) ?? ''}${earlier}`);
}

function showError(owner, button, error) {
  const text = `No response: ${error.message}. Is the demo still running?`;
  showParts(owner, button, undefined, [element('p', {}, text)]);
  say(text);
}

/** Sends when the button is used. `run` gives what was sent. */
function onUse(button, owner, run) {
  button.addEventListener('click', () =>
    run()
      .then((sent) => showSent(owner, button, sent))
      .catch((error) => showError(owner, button, error)),
  );
}

/* The story. */

/** The calls of a thief, by the way in which each sends the token. */
const thefts = new Map(
  groups.filter(({ id }) => id === 'stolen').flatMap(({ examples }) => examples.map((each) => [each.way, each])),
);

function replyTo({ call, first, response }) {
  const { status } = response;
  const isExpected = status === call.status;
  const outcome = isExpected ? 'the thief is refused' : 'the thief gets in';
  const yours = first === undefined ? '' : `You: ${first}. `;
  const reason = reasonIn(response);
  return [
    element('span', {}, `${yours}Thief: `, element('strong', {}, String(status))),
    verdict(isExpected, outcome),
    ...(reason === undefined ? [] : [element('q', {}, reason)]),
  ];
}

for (const card of document.querySelectorAll('[data-way]')) {
  const call = thefts.get(card.dataset.way);
  const reply = card.querySelector('.reply');
  onUse(card.querySelector('button'), card, async () => {
    const sent = await send(call);
    reply.replaceChildren(...replyTo(sent));
    return sent;
  });
}

/* The calls. */

const WAYS = {
  proof: 'with a new proof',
  replay: 'with a used proof',
  'other-key': 'proof by another key',
  bearer: 'without proof',
};

/** Of clients whose tokens are known by something else than their name. */
const TOKENS = { stranger: 'token for another API' };

const tokenOf = ({ as, way }) => {
  if (as === undefined) return 'no token';
  const token = TOKENS[as] ?? `token of ${as}`;
  return way === undefined ? token : `${token}, ${WAYS[way]}`;
};

/** What a row says before and after it is sent: the same size, so that nothing moves. */
const expectation = (status) => element('span', { class: 'note' }, `expects ${status}`);

const result = (got, expected) =>
  got === expected ? verdict(true, `${got} as expected`) : verdict(false, `${got}, expected ${expected}`);

function rowFor(example) {
  const { path, status, why } = example;
  const got = element('p', { class: 'got' }, expectation(status));
  const label = `Send GET ${path}, ${tokenOf(example)}`;
  const button = element('button', { type: 'button', 'aria-label': label }, 'Send');
  const call = element(
    'div',
    { class: 'call' },
    element('p', { class: 'path' }, element('code', {}, path)),
    element('p', { class: 'token' }, tokenOf(example)),
    element('p', { class: 'why' }, why),
    got,
    button,
  );
  const row = element('li', {}, call);
  const run = async () => {
    const sent = await send(example);
    got.replaceChildren(result(sent.response.status, status));
    return sent;
  };
  onUse(button, row, run);
  return { row, run };
}

const rows = [];

function groupFor({ id, title, says, examples }) {
  const own = examples.map(rowFor);
  rows.push(...own);
  return element(
    'section',
    { 'aria-labelledby': `group-${id}` },
    element('h3', { id: `group-${id}` }, title),
    element('p', { class: 'says' }, says),
    // With list-style none, Safari takes a list for none unless it has the role.
    element('ul', { role: 'list', class: 'rows' }, ...own.map(({ row }) => row)),
  );
}

const isAsExpected = ({ call, response: { status } }) => call.status === status;

/** Shows results alone: the response that is open stays. */
async function sendAll() {
  byId('tally').textContent = '';
  let expected = 0;
  for (const { run } of rows) expected += isAsExpected(await run()) ? 1 : 0;
  byId('tally').replaceChildren(verdict(expected === rows.length, `${expected} of ${rows.length} as expected`));
}

byId('send-all').addEventListener('click', ({ target }) => {
  sendAll().catch((error) => showError(byId('calls'), target, error));
});

/* Your own call. */

const HAS_BODY = ['POST', 'PUT', 'PATCH', 'DELETE'];

/** Fields that mean nothing for this call are there and cannot be used, so that nothing moves. */
function adaptForm() {
  byId('way').disabled = byId('as').value === '';
  byId('body').disabled = !HAS_BODY.includes(byId('method').value);
}

byId('own').addEventListener('change', adaptForm);
byId('own').addEventListener('submit', (event) => {
  event.preventDefault();
  const owner = byId('own-call');
  const button = byId('send-own');
  send(Object.fromEntries(new FormData(event.target)))
    .then((sent) => showSent(owner, button, sent))
    .catch((error) => showError(owner, button, error));
});

/* The response. */

/** A proof works once: the line gets a new one, unless a used one is the point of the call. */
async function copyAsCurl({ call, request }) {
  const fresh = call.way === 'replay' ? request : await requestFor(call);
  const line = curlLine(fresh);
  const note = call.way === 'proof' ? 'Copied, with a new proof: it works once.' : 'Copied.';
  try {
    await navigator.clipboard.writeText(line);
    byId('copied').textContent = note;
  } catch {
    // Not permitted: the line is there to be selected.
    byId('copied').replaceChildren(element('code', {}, line));
  }
}

byId('copy').addEventListener('click', () => {
  copyAsCurl(last.sent).catch((error) => showError(last.owner, byId('copy'), error));
});

isNarrow.addEventListener('change', place);
byId('profile').textContent = `Profile ${profile}`;
byId('service').textContent = service;
byId('groups').append(...groups.map(groupFor));
byId('as').append(...Object.keys(tokens).map((client) => element('option', { value: client }, client)));
const paths = new Set(groups.flatMap(({ examples }) => examples.map(({ path }) => path)));
byId('paths').append(...[...paths].map((path) => element('option', { value: path })));
adaptForm();
document.documentElement.dataset.ready = 'true';

/* The demo's page: sends each call to the service, and shows the response. It makes every element by hand, so that no text
   of a response can become markup. */
import { makeKey, makeProof } from './dpop.js';

const byId = (id) => document.getElementById(id);

/** An element with attributes, and texts or elements in it. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

const { profile, service, tokenEndpoint, tokens, examples } = await (await fetch('/demo.json')).json();
const key = makeKey();
const boundTokens = new Map();

/** A token that is bound to the key of this page: the demo passes the proof on to the provider. */
async function boundTokenOf(client) {
  if (!boundTokens.has(client)) {
    const { proof } = await makeProof(await key, 'POST', tokenEndpoint);
    const headers = { 'Content-Type': 'application/json', DPoP: proof };
    const response = await fetch('/token', { method: 'POST', headers, body: JSON.stringify({ client }) });
    boundTokens.set(client, (await response.json()).access_token);
  }
  return boundTokens.get(client);
}

/** The fields of a request, and what the proof says if it has one. */
async function fieldsFor(url, as, way) {
  if (!as) return { headers: {} };
  if (!way) return { headers: { Authorization: `Bearer ${tokens[as]}` } };
  const token = await boundTokenOf(as);
  if (way === 'bearer') return { headers: { Authorization: `Bearer ${token}` } };
  const signer = way === 'other-key' ? await makeKey() : await key;
  const { proof, header, claims } = await makeProof(signer, 'GET', url.split(/[?#]/)[0], token);
  return { headers: { Authorization: `DPoP ${token}`, DPoP: proof }, proof: { header, claims } };
}

async function send({ path, as, way }) {
  const url = service + path;
  const { headers, proof } = await fieldsFor(url, as, way);
  if (way === 'replay') await fetch(url, { headers });
  const start = performance.now();
  const response = await fetch(url, { headers });
  const body = await response.text();
  return { response, body, millis: performance.now() - start, headers, proof };
}

/** Each challenge of the field on a line of its own. */
const challengesIn = (field) => field.split(/, (?=(?:Bearer|DPoP) )/);

function pretty(body) {
  try {
    return JSON.stringify(JSON.parse(body), undefined, 2);
  } catch {
    return body;
  }
}

/** Long enough to be recognised. */
const shorten = (value) => (value.length > 48 ? `${value.slice(0, 36)}…${value.slice(-8)}` : value);

const block = (title, text) => [element('h3', {}, title), element('pre', { tabindex: '0', 'aria-label': title }, text)];

function show({ path }, { response, body, millis, headers, proof }) {
  const { status } = response;
  const sent = Object.entries(headers).map(([name, value]) => `${name}: ${shorten(value)}`);
  const challenge = response.headers.get('WWW-Authenticate');
  const names = [...response.headers].filter(([name]) => name !== 'www-authenticate');
  byId('shown').replaceChildren(
    element('p', { class: 'line' }, badge(status), ` GET ${path} `, element('span', { class: 'faint' }, `${millis.toFixed(0)} ms`)),
    ...(challenge === null ? [] : block('WWW-Authenticate', challengesIn(challenge).join('\n'))),
    ...block('Body', pretty(body)),
    ...block('Sent', [`GET ${path}`, ...sent].join('\n')),
    ...(proof === undefined ? [] : block('The proof says', JSON.stringify(proof.claims, undefined, 2))),
    ...block('Other fields that a page may read', names.map(([name, value]) => `${name}: ${value}`).join('\n')),
  );
}

const badge = (status) => element('span', { class: `badge is-${String(status)[0]}` }, String(status));

/** For whoever hears the page: the status, and the challenge if there is one. */
function say({ path }, { response }) {
  const challenge = response.headers.get('WWW-Authenticate') ?? '';
  byId('said').textContent = `${response.status} for GET ${path}. ${challenge}`;
}

function showError(error) {
  byId('said').textContent = 'No response';
  byId('shown').replaceChildren(element('p', {}, `No response: ${error.message}. Is the demo still running?`));
}

/** On a narrow screen the response is below. */
const bringIntoView = () => byId('response').scrollIntoView({ block: 'nearest' });

const WAYS = { proof: 'with its proof', replay: 'with a used proof', 'other-key': 'proof by another key', bearer: 'bound, no proof' };

const describe = ({ as, way }) => [as ?? 'none', ...(way === undefined ? [] : [WAYS[way]])].join(', ');

function rowFor(example) {
  const { path, status, why } = example;
  const got = element('td', { class: 'got' }, '–');
  const button = element('button', { type: 'button', 'aria-label': `Send GET ${path}, token: ${describe(example)}` }, 'Send');
  const row = element(
    'tr',
    {},
    element('th', { scope: 'row' }, element('code', {}, path)),
    element('td', {}, describe(example)),
    element('td', {}, why),
    element('td', {}, String(status)),
    got,
    element('td', {}, button),
  );
  const run = async () => {
    const sent = await send(example);
    const isExpected = sent.response.status === status;
    got.replaceChildren(badge(sent.response.status), ...(isExpected ? [] : [' unexpected']));
    show(example, sent);
    for (const other of byId('rows').children) other.classList.toggle('is-shown', other === row);
    return { isExpected, sent };
  };
  button.addEventListener('click', () =>
    run()
      .then(({ sent }) => say(example, sent))
      .then(bringIntoView)
      .catch(showError),
  );
  return { row, run };
}

const rows = examples.map(rowFor);

async function sendAll() {
  let expected = 0;
  for (const { run } of rows) expected += (await run()).isExpected ? 1 : 0;
  byId('tally').textContent = `${expected} of ${rows.length} as expected`;
}

byId('profile').textContent = `, profile ${profile}`;
byId('service').textContent = service;
byId('rows').append(...rows.map(({ row }) => row));
byId('as').append(...Object.keys(tokens).map((client) => element('option', { value: client }, client)));
byId('paths').append(...[...new Set(examples.map(({ path }) => path))].map((path) => element('option', { value: path })));
byId('send-all').addEventListener('click', () => sendAll().catch(showError));

byId('own').addEventListener('submit', (event) => {
  event.preventDefault();
  const own = Object.fromEntries(new FormData(event.target));
  send(own)
    .then((sent) => {
      show(own, sent);
      say(own, sent);
    })
    .then(bringIntoView)
    .catch(showError);
});
document.documentElement.dataset.ready = 'true';

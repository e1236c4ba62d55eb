/* Makes the requests of the page and sends them. A bound token comes from the provider by way of the demo, and is bound to
   the key of this page. */
import { makeKey, makeProof } from './dpop.js';

/** What the demo says of itself: the service, the clients' tokens, and the calls. */
export const demo = await (await fetch('/demo.json')).json();

const { service, tokenEndpoint, tokens } = demo;
const key = makeKey();
const boundTokens = new Map();

async function askForBoundToken(client) {
  const { proof } = await makeProof(await key, 'POST', tokenEndpoint);
  const headers = { 'Content-Type': 'application/json', DPoP: proof };
  const response = await fetch('/token', { method: 'POST', headers, body: JSON.stringify({ client }) });
  if (!response.ok) throw new Error(`there is no token for ${client}`);
  return (await response.json()).access_token;
}

async function boundTokenOf(client) {
  if (!boundTokens.has(client)) boundTokens.set(client, await askForBoundToken(client));
  return boundTokens.get(client);
}

/** The token of a call and its fields, with the claims of the proof if there is one. */
async function credentialsFor({ method, as, way }, url) {
  if (!as) return { headers: {} };
  if (!way) return { token: tokens[as], headers: { Authorization: `Bearer ${tokens[as]}` } };

  const token = await boundTokenOf(as);
  if (way === 'bearer') return { token, headers: { Authorization: `Bearer ${token}` } };

  const signer = way === 'other-key' ? await makeKey() : await key;
  const { proof, claims } = await makeProof(signer, method, url.split(/[?#]/)[0], token);
  return { token, headers: { Authorization: `DPoP ${token}`, DPoP: proof }, proof: claims };
}

/** The request of a call, with a new proof if it needs one. A body is for the methods that have one. */
export async function requestFor({ method = 'GET', path, as, way, body = '' }) {
  const url = service + path;
  const { token, headers, proof } = await credentialsFor({ method, as, way }, url);
  if (body === '') return { method, path, url, headers, token, proof };
  return { method, path, url, headers: { ...headers, 'Content-Type': 'application/json' }, body, token, proof };
}

const fetchFor = ({ method, url, headers, body }) => fetch(url, { method, headers, body });

/** Sends a call: one that replays a proof is sent twice, and `first` is the status of the request that was copied. */
export async function send(call) {
  const request = await requestFor(call);
  const first = call.way === 'replay' ? (await fetchFor(request)).status : undefined;
  const start = performance.now();
  const response = await fetchFor(request);
  const body = await response.text();
  return { call, request, first, response, body, millis: performance.now() - start };
}

/** The claims of a token, which anyone can read: only its signature needs a key. */
export function claimsOf(token) {
  const text = token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(text), (char) => char.charCodeAt(0))));
}

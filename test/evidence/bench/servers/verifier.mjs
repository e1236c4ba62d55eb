// What stands beside gatehouse where a goal cannot be had: the least that a server must do that finds its keys by discovery, over
// connections of their own, takes each token apart strictly, looks whether it has seen it, verifies it and looks at its claims.
import { createPublicKey, hash, verify } from 'node:crypto';
import { createServer } from 'node:http';
import { get } from 'node:https';
import { audience, host, issuer, jwksUri, port, send } from './environment.mjs';

const answers = new Map(Object.entries(JSON.parse(process.env.ANSWERS)));
const seen = new Map();

const fetchJson = (address) =>
  new Promise((resolve, reject) => {
    const request = get(address, { agent: false }, async (response) => resolve(JSON.parse(Buffer.concat(await response.toArray()))));
    request.on('error', reject);
  });

const discover = async () => (await fetchJson(`${issuer}.well-known/openid-configuration`)).jwks_uri;
const importKey = (jwk) => [jwk.kid, createPublicKey({ key: jwk, format: 'jwk' })];

async function fetchKeys() {
  const set = await fetchJson(process.env.DISCOVERED === 'true' ? await discover() : jwksUri);
  return new Map(set.keys.map(importKey));
}

const keys = fetchKeys();
let known;
void keys.then((fetched) => { known = fetched; });

function decode(text) {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.toString('base64url') !== text) throw new Error('not canonical');
  return bytes;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const parse = (text) => JSON.parse(utf8.decode(decode(text)));

function isGood(token, known) {
  const digest = hash('sha256', token, 'base64url');
  if (seen.get(digest) > Date.now() / 1000) return true;

  const [head, body, signature] = token.split('.');
  const { alg, kid } = parse(head);
  const { iss, aud, exp, sub } = parse(body);
  const signed = Buffer.from(token.slice(0, token.lastIndexOf('.')), 'latin1');
  const isSigned = alg === 'RS256' && verify('sha256', signed, known.get(kid), decode(signature));
  const isAccepted = isSigned && iss === issuer && aud === audience && exp > Date.now() / 1000 && sub !== '';
  if (isAccepted && process.env.REMEMBER === 'true') seen.set(digest, exp);
  return isAccepted;
}

async function answer({ url, headers }, response) {
  const token = headers.authorization?.slice('Bearer '.length);
  const isRefused = token !== undefined && !isGood(token, known ?? (await keys));
  send(response, answers.get(isRefused ? '/api/invalid' : url));
}

createServer({ keepAliveTimeout: 72_000 }, (request, response) => void answer(request, response)).listen(port, host);

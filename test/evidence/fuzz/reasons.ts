/* Why gatehouse may refuse what another accepts. A disagreement without a line here fails the run. */

const TOKEN: Readonly<Record<string, string>> = {
  'algorithm-refused: key':
    'a key verifies one algorithm, that of its alg or the first of the list that its type can; others let the header choose among those that its type can (docs/how-a-request-is-checked.md, the token, 3; RFC 8725 §3.1)',
  'algorithm-refused: Ed25519':
    'the name of RFC 9864 is not one of the six: EdDSA is Ed25519 here (docs/keys.md)',
  'token-malformed':
    'one spelling only: canonical base64url, exactly three parts (docs/how-a-request-is-checked.md, the token, 1; RFC 7515 §2)',
  'header-malformed':
    'UTF-8 without byte-order mark, and nothing decoded leniently (docs/how-a-request-is-checked.md, the token, 1)',
  'payload-malformed':
    'UTF-8 without byte-order mark, and nothing decoded leniently (docs/how-a-request-is-checked.md, the token, 1; RFC 7519 §7.2)',
  'critical-header':
    'any crit, also an empty value, and b64 without crit (docs/how-a-request-is-checked.md, the token, 2; RFC 7515 §4.1.11)',
  'type-refused':
    'typ is JWT or at+jwt, as text (docs/how-a-request-is-checked.md, the token, 2; RFC 8725 §3.11)',
  'key-id-malformed': 'kid is text (docs/how-a-request-is-checked.md, the token, 2; RFC 7515 §4.1.4)',
  'key-unknown':
    'kid names exactly one usable key; without kid there is exactly one (docs/how-a-request-is-checked.md, the token, 3)',
  'audience-mismatch':
    'every member of an aud array is text (docs/how-a-request-is-checked.md, the token, 5; RFC 7519 §4.1.3)',
  'expiry-malformed':
    'exp is a finite number; JSON reads 1e999 as Infinity (docs/how-a-request-is-checked.md, the token, 5)',
  expired:
    'a token that expires now has expired (docs/how-a-request-is-checked.md, the token, 5; RFC 7519 §4.1.4)',
  'not-before-malformed': 'nbf is a finite number (docs/how-a-request-is-checked.md, the token, 5)',
  'issued-at-malformed': 'iat is a finite number (docs/how-a-request-is-checked.md, the token, 5)',
  'subject-malformed':
    'sub is non-empty text (docs/how-a-request-is-checked.md, the token, 5; RFC 9068 §2.2)',
  'token-use-refused': 'token_use, when present, is access (docs/how-a-request-is-checked.md, the token, 6)',
  'payload-type-refused':
    'a payload typ names an access token (docs/how-a-request-is-checked.md, the token, 6)',
  'event-token':
    'no security event or logout token (docs/how-a-request-is-checked.md, the token, 6; RFC 8417 §2.2)',
  'id-token': 'no ID token (docs/how-a-request-is-checked.md, the token, 6)',
};

const REASONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  token: TOKEN,
  authorization: {
    ...TOKEN,
    'proof-beside-bearer': 'a DPoP field beside Bearer is a request at odds with itself (docs/dpop.md)',
    'credentials-malformed':
      'exactly one space and one token without white space or comma (docs/how-a-request-is-checked.md)',
  },
  proof: {
    'proof-malformed': 'as for tokens: one spelling, UTF-8 without byte-order mark (RFC 7515 §2)',
    'proof-critical': 'any crit, and b64 without crit (docs/dpop.md)',
    'proof-key': 'no private member, canonical coordinates, RSA of 2048 to 4096 bits (docs/dpop.md)',
    'proof-jti': 'jti is text of 1 to 256 characters (docs/dpop.md; RFC 9449 §11.1)',
    'proof-iat': 'iat is a finite number (docs/dpop.md)',
    'proof-htu':
      'htu is an absolute URI by RFC 3986; URL also takes what that forbids (docs/dpop.md; RFC 9449 §4.3(9))',
  },
  'key set': {
    'key-unknown':
      'kid names exactly one usable key, and no other bears it; without kid there is exactly one (docs/how-a-request-is-checked.md, the token, 3)',
    'no-usable-key':
      'kid, use and key_ops of their types, canonical n and e, e of at least 3, no private member (docs/how-a-request-is-checked.md, the token, 3)',
    'signature-mismatch':
      'one key is tried, not every one that could fit (docs/how-a-request-is-checked.md, the token, 3)',
    'too-many-keys': 'at most 100 keys (docs/keys.md)',
    'algorithm-refused':
      'a key without alg verifies the first algorithm of the list that its type can, not every one (docs/keys.md)',
  },
  yaml: Object.fromEntries(
    [
      'a missing "key: value", a quote not closed on its line, or a list item out of place',
      'a directive or a second document; remove it',
      'a key that is not text of at most 1000 characters; quote or shorten it',
      'a tab or another character that is not supported; use spaces',
      'a list item on the line of its key, or unsupported YAML; quote it',
      'a quote or list not closed on its line, an unknown escape, or something after the value',
      'a list inside a list',
      'the indentation fits no map; a value must end on the line where it begins',
      'a key that is already set; remove one of the two',
    ].map((message) => [message, 'outside the part of YAML that settings need (docs/settings.md)']),
  ),
};

export const reasonFor = (target: string, reason: string): string | undefined => REASONS[target]?.[reason];

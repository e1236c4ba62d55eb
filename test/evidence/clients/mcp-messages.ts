/* What the MCP server of the documents makes of raw requests: challenges, messages, origins and spellings. */
import {
  BOTH,
  FOREIGN,
  hasWritten,
  inScene,
  kindsOf,
  PAGE_ORIGIN,
  READ,
  statusesOf,
  type Fact,
  type Scene,
} from './mcp-scene.ts';
import { MOUNTED, replaceAll, SDK_1, type ServerKind } from './mcp-program.ts';
import { call, INITIALIZE, LIST, modern, SEND } from './mcp-wire.ts';

const WELL_KNOWN = '/.well-known/oauth-protected-resource/mcp';

export async function challenges(scene: Scene): Promise<Fact[]> {
  const { url } = scene.program;
  const metadata = `resource_metadata="${url.replace('/mcp', WELL_KNOWN)}"`;
  const stranger = await scene.ask({ body: INITIALIZE });
  const token = scene.token();
  const session = await scene.open(token);
  const refused = await scene.ask({ token, session, body: SEND });
  const [, description = ''] =
    /error_description="([^"]*)"/.exec(refused.headers['www-authenticate'] ?? '') ?? [];
  const served = await scene.ask({ token: scene.token({ scope: BOTH }), session, body: SEND });
  const document = await scene.ask({ method: 'GET', path: WELL_KNOWN, fields: ['Origin', FOREIGN] });
  const error = `error="insufficient_scope", error_description="${description}"`;
  return [
    {
      name: 'without a token the challenge names the base scope',
      found: [stranger.status, stranger.headers['www-authenticate']],
      expected: [401, `Bearer realm="api", scope="${READ}", ${metadata}, ${DPOP}, ${metadata}`],
    },
    {
      name: 'without the scope of a tool the challenge names it and the base scope',
      found: [refused.status, refused.headers['www-authenticate']],
      expected: [403, `Bearer realm="api", ${error}, scope="${BOTH}", ${metadata}, ${DPOP}, ${metadata}`],
    },
    {
      name: 'a token with the scope of the tool goes on in the same session',
      found: [served.status, hasWritten(served)],
      expected: [200, true],
    },
    {
      name: 'pages of every origin read the document',
      found: [
        document.status,
        document.headers['access-control-allow-origin'],
        JSON.parse(document.text).resource,
      ],
      expected: [200, '*', url],
    },
  ];
}

/** The challenge of the other scheme. */
const DPOP = 'DPoP algs="ES256 ES384 ES512 EdDSA PS256 RS256"';

const NO_MESSAGES: readonly unknown[] = [
  ...['', '{', 'null', '1', '"tools/call"', '[]', `${JSON.stringify(LIST)}\n${JSON.stringify(SEND)}`],
  ...[[LIST], [LIST, SEND], [[SEND]]],
];

const ODD_CALLS: readonly unknown[] = [
  { jsonrpc: '2.0', id: 2, method: 'tools/call' },
  ...[null, 7, 'send_message', ['send_message']].map((params) => ({ ...SEND, params })),
  ...[undefined, null, 7, true, ['send_message'], { name: 'send_message' }].map((name) => call(name)),
  ...['nothing', 'constructor', '__proto__', 'toString', ''].map((name) => call(name)),
  ...['SEND_MESSAGE', 'send_message ', 'send_message\0', 'send_message\u200b'].map((name) => call(name)),
  // A long s, a wide low line, a letter with its accent apart.
  ...['\u017fend_message', 'send\uff3fmessage', 'send_me\u0301ssage'].map((name) => call(name)),
];

const SENT = JSON.stringify(SEND);
const PARAMS = JSON.stringify(SEND.params);

/** Each would run the tool if the check and the SDK read it differently. */
const HIDDEN_CALLS: readonly string[] = [
  // The last of two members counts, for both.
  SENT.replace('{', '{"method":"ping",'),
  SENT.replace(/}$/, ',"method":"ping"}'),
  SENT.replace('"params":{', '"params":{"name":"list_messages",'),
  SENT.replace('"arguments"', '"name":"list_messages","arguments"'),
  SENT.replace('tools/call', 'tools\\/c\\u0061ll'),
  SENT.replace('"method"', '"m\\u0065thod"'),
  SENT.replace('"tools/call"', '["tools/call"]'),
  SENT.replace('"tools/call"', '{"toString":"tools/call"}'),
  SENT.replace('tools/call', 'tools/call '),
  SENT.replace('tools/call', 'Tools/Call'),
  SENT.replace('tools/call', 'tools\uff0fcall'),
  `{"jsonrpc":"2.0","id":2,"__proto__":{"method":"tools/call","params":${PARAMS}}}`,
  `{"jsonrpc":"2.0","id":2,"method":"ping","__proto__":${SENT}}`,
  `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_messages","__proto__":${PARAMS}}}`,
  `{"jsonrpc":"2.0","id":2,"constructor":{"prototype":{"method":"tools/call"}},"params":${PARAMS}}`,
  `{"0":${SENT},"length":1}`,
  `{"jsonrpc":"2.0","id":2,"result":{},"method":"tools/call","params":${PARAMS}}`,
  // A notification.
  `{"jsonrpc":"2.0","method":"tools/call","params":${PARAMS}}`,
  `{"jsonrpc":"2.0","id":2,"method":"ping","params":{"method":"tools/call","params":${PARAMS}}}`,
  `\ufeff${SENT}`,
];

const DEEP = `{"jsonrpc":"2.0","id":3,"method":"ping","params":{"a":${'['.repeat(400_000)}${']'.repeat(400_000)}}}`;

/** In the revision without sessions: its header fields repeat the method and the tool. */
async function newest({ ask, askAll, token, kind }: Scene): Promise<Fact[]> {
  if (kind === SDK_1) return [];

  const answers = await askAll([
    { token: token(), ...modern(SEND) },
    { token: token(), ...modern(SEND, 'tools/list') },
    { token: token(), ...modern(SEND), fields: ['MCP-Protocol-Version', '2026-07-28'] },
    { token: token({ scope: BOTH }), ...modern(SEND, 'tools/list') },
  ]);
  const served = await ask({ token: token({ scope: BOTH }), ...modern(SEND) });
  const listen = { jsonrpc: '2.0', id: 4, method: 'subscriptions/listen', params: { notifications: {} } };
  const listener = await ask({ token: token(), ...modern(listen) });
  return [
    {
      name: 'the fields Mcp-Method and Mcp-Name open no tool',
      found: [statusesOf(answers), hasWritten(served)],
      expected: [[403, 403, 403, 400], true],
    },
    {
      name: 'no client holds a subscription open',
      found: listener.text.includes('Subscription limit reached'),
      expected: true,
    },
  ];
}

export async function messages(scene: Scene): Promise<Fact[]> {
  const token = scene.token();
  const session = await scene.open(token);

  const askAll = (bodies: readonly unknown[]) =>
    scene.askAll(bodies.map((body) => ({ token, session, body })));

  const none = await askAll(NO_MESSAGES);
  const odd = await askAll(ODD_CALLS);
  const hidden = await askAll([...HIDDEN_CALLS, DEEP]);
  const after = await scene.ask({ token, session, body: LIST });
  return [
    { name: 'arrays of messages, and what is no message, get 400', found: kindsOf(none), expected: [400] },
    {
      name: 'a call of a tool that does not exist, or whose name is no text, gets 400',
      found: kindsOf(odd),
      expected: [400],
    },
    {
      name: 'no spelling of a call gets past the scope of its tool',
      found: HIDDEN_CALLS.filter((_, index) => hidden[index] === undefined || hasWritten(hidden[index])),
      expected: [],
    },
    { name: 'the server goes on after all of them', found: after.status, expected: 200 },
    ...(await newest(scene)),
  ];
}

/** What a tool does when the checks on the body are not there. */
export const unchecked = (kind: ServerKind): Promise<Fact[]> =>
  inScene(
    kind,
    async ({ token, open, ask }) => {
      const session = await open(token());
      const answers = await Promise.all(
        [token(), token({ scope: BOTH })].map((each) => ask({ token: each, session, body: [SEND] })),
      );
      return [
        {
          name: 'a tool checks the scope itself, in case a message gets past the first check',
          found: answers.map((answer) => [answer.status, hasWritten(answer)]),
          expected: [
            [200, false],
            [200, true],
          ],
        },
      ];
    },
    (lines) =>
      replaceAll(lines, [
        [
          kind === MOUNTED ? 'await refusalOf(message, authorize);' : 'refusalOf(message, caller);',
          'undefined;',
        ],
      ]),
  );

const WANTED = ['authorization', 'content-type', 'last-event-id', 'mcp-protocol-version', 'mcp-session-id'];

export async function origins(scene: Scene): Promise<Fact[]> {
  const token = scene.token();
  const session = await scene.open(token);
  const from = (...fields: string[]) => scene.ask({ token, session, body: LIST, fields });
  const others = ['null', '', FOREIGN, `${PAGE_ORIGIN}.evil.example`, PAGE_ORIGIN.toUpperCase()];
  const foreign = await Promise.all([
    ...others.map((origin) => from('Origin', origin)),
    from('Origin', PAGE_ORIGIN, 'Origin', FOREIGN),
    scene.ask({ body: LIST, fields: ['Origin', FOREIGN] }),
    scene.ask({ method: 'OPTIONS', fields: ['Origin', FOREIGN, 'Access-Control-Request-Method', 'POST'] }),
  ]);
  const preflight = await scene.ask({
    method: 'OPTIONS',
    fields: ['Origin', PAGE_ORIGIN, 'Access-Control-Request-Method', 'POST'],
  });
  const allowed = preflight.headers['access-control-allow-headers']?.toLowerCase().split(', ') ?? [];
  const replies = [await from('Origin', PAGE_ORIGIN), await scene.ask({ fields: ['Origin', PAGE_ORIGIN] })];
  const readable = ['Mcp-Session-Id', 'WWW-Authenticate'];
  return [
    { name: 'a foreign Origin gets 403, with a token and without', found: kindsOf(foreign), expected: [403] },
    {
      name: 'pages of a foreign origin read nothing',
      found: foreign.filter(({ headers }) => 'access-control-allow-origin' in headers),
      expected: [],
    },
    { name: 'a request without Origin passes', found: (await from()).status, expected: 200 },
    {
      name: 'a preflight of a listed origin gets 204, and the fields that MCP clients send',
      found: [preflight.status, WANTED.filter((name) => !allowed.includes(name))],
      expected: [204, []],
    },
    {
      name: 'pages of a listed origin read the session and the challenge',
      found: replies.map(({ status, headers }) => [
        status,
        headers['access-control-allow-origin'],
        readable.filter((name) => !headers['access-control-expose-headers']?.split(', ').includes(name)),
      ]),
      expected: [
        [200, PAGE_ORIGIN, []],
        [401, PAGE_ORIGIN, []],
      ],
    },
  ];
}

const TYPES = [
  'text/plain',
  'application/json-rpc',
  'text/plain; a=application/json',
  'application/json, text/plain',
  '',
];

const PATHS = [
  ...['/', '/mcp/', '//mcp', '/MCP', '/mcp%2f', '/%6dcp', '/mcp;x', '/mcp?a=/x'],
  ...['/x/../mcp', '/mcp/..', 'http://evil.example/mcp'],
];

const OVERRIDE = ['X-HTTP-Method-Override', 'POST', 'X-HTTP-Method', 'POST', 'X-Method-Override', 'POST'];

export async function spellings(scene: Scene): Promise<Fact[]> {
  const token = scene.token();
  const session = await scene.open(token);
  const typed = await scene.askAll(
    TYPES.map((type) => ({ token, session, body: LIST, fields: ['Content-Type', type] })),
  );
  const paths = await scene.askAll(PATHS.map((path) => ({ path, body: LIST })));
  const methods = await scene.askAll(
    ['GET', 'DELETE', 'PUT', 'PATCH', 'OPTIONS', 'HEAD'].map((method) => ({
      method,
      token: scene.token({ scope: BOTH }),
      fields: ['Content-Type', 'application/json', ...OVERRIDE],
      body: SEND,
    })),
  );
  const tokens = await scene.askAll([
    { session, path: `/mcp?access_token=${token}`, body: LIST },
    { session, body: LIST, fields: ['Cookie', `access_token=${token}`] },
    { session, body: LIST, fields: ['Authorization', `Bearer ${token}`, 'Authorization', 'Bearer x'] },
    { session, body: LIST, token: scene.token({ exp: 1 }) },
    { session, body: LIST, token: scene.token({ aud: 'https://another.example/mcp' }) },
    { session, body: LIST, token: scene.token({ scope: 'write:messages' }) },
  ]);
  return [
    { name: 'a body that is not called JSON gets 415', found: kindsOf(typed), expected: [415] },
    {
      name: 'no spelling of the path is served without a token',
      found: paths.filter(({ status }) => status < 400),
      expected: [],
    },
    {
      name: 'a field that names another method does nothing',
      found: methods.filter((answer) => answer.status < 400 || hasWritten(answer)),
      expected: [],
    },
    {
      name: 'a token in the query, in a cookie, twice, expired, of another API or without the base scope is refused',
      found: statusesOf(tokens),
      // A service sees both fields, which Hono joins.
      expected: [401, 401, scene.kind === MOUNTED ? 400 : 401, 401, 401, 403],
    },
  ];
}

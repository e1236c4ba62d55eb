/* The MCP server of the documents, between a fake provider that gives tokens for any subject and any time, and another issuer
   that the server trusts too. */
import { startProvider, type Provider } from '../../idp/provider.ts';
import { MOUNTED, replaceAll, startMcpProgram, type McpProgram, type ServerKind } from './mcp-program.ts';
import { ask, INITIALIZE, type Answer, type Question } from './mcp-wire.ts';

/** Something that holds, or does not. */
export interface Fact {
  readonly name: string;
  readonly found: unknown;
  readonly expected: unknown;
}

export interface Scene {
  readonly program: McpProgram;
  readonly kind: ServerKind;
  readonly ask: (question: Question) => Promise<Answer>;
  readonly askAll: (questions: readonly Question[]) => Promise<Answer[]>;
  /** With the base scope, for `alice`, unless claims say otherwise. */
  readonly token: (claims?: Record<string, unknown>) => string;
  readonly otherIssuersToken: () => string;
  /** The id of a new session. */
  readonly open: (token: string) => Promise<string>;
}

export const READ = 'read:messages';
export const BOTH = 'read:messages write:messages';
export const PAGE_ORIGIN = 'https://app.example.com';
export const FOREIGN = 'https://evil.example';

/** The number of sessions for all callers together; the program has a thousand. */
export const SESSIONS = 10;

export const statusesOf = (answers: readonly Answer[]) => answers.map(({ status }) => status);

/** Each once. */
export const kindsOf = (answers: readonly Answer[]) => [...new Set(statusesOf(answers))];

/** Whether the tool that writes has run, whatever the status. */
export const hasWritten = ({ text }: Answer) => text.includes('has written');

/** Four more tools: one shows everything that it receives, one counts timers, two take time. */
const ODD_TOOLS = `
  ['tell', { access: base, inputSchema: z.object({}), run: (...all) => inspect(all, EVERYTHING) }],
  ['count_timers', { access: base, inputSchema: z.object({}), run: () => timers() }],
  ['take_a_moment', { access: base, inputSchema: z.object({}), run: () => sleep(50, 'a moment later') }],
  ['wait_for_ever', { access: base, inputSchema: z.object({}), run: () => new Promise(() => {}) }],
`;

const ODD_HELPERS = `
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

const EVERYTHING = { depth: 20, showHidden: true, getters: true, maxStringLength: null };
const timers = () => 'timers: ' + process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
const fieldsOf = ({ http, requestInfo }) => [...(http?.req?.headers ?? Object.entries(requestInfo.headers))];
`;

/** The lines of the program with these tools, which also receive everything else that the SDK passes on. */
function withOddTools(lines: string): string {
  const [parameter = '', name = ''] = /async \(input, \{ (\w+) \}\)/.exec(lines) ?? [];
  return replaceAll(lines, [
    ["from 'zod';\n", `from 'zod';\n${ODD_HELPERS}`],
    ['const tools = new Map([', `const tools = new Map([${ODD_TOOLS}`],
    [`${parameter} => {`, `async (input, context) => {\n      const { ${name} } = context;`],
    ['run(input, caller)', 'run(input, caller, context, fieldsOf(context))'],
  ]);
}

const withIssuer = ({ domain }: Provider) =>
  `issuers: { other: { domain: '${domain}', audience: RESOURCE } },`;

const settingsFor = ({ domain }: Provider) => ({ ISSUERS: 'other', ISSUER_OTHER_DOMAIN: domain });

/** Runs `work` in a new scene, and ends the scene afterwards. `edit` changes lines of the program. */
export async function inScene<Result>(
  kind: ServerKind,
  work: (scene: Scene) => Promise<Result>,
  edit: (lines: string) => string = (lines) => lines,
): Promise<Result> {
  const [provider, other] = await Promise.all([startProvider(), startProvider()]);
  const { domain, issuer } = provider;

  const edits = (lines: string) =>
    replaceAll(edit(withOddTools(lines)), [
      ...(kind === MOUNTED
        ? []
        : [['  log: jsonLog(),\n', `  log: jsonLog(),\n  ${withIssuer(other)}\n`] as const]),
      ['sessions: 1_000,', `sessions: ${SESSIONS},`],
    ]);

  const settings = settingsFor(other);
  const program = await startMcpProgram({ domain, issuer, kind, edit: edits, settings });
  const { port, url } = program;

  const tokenOf = (from: Provider, claims?: Record<string, unknown>) =>
    from.issue({ aud: url, sub: 'alice', scope: READ, ...claims });

  const send = (question: Question) => ask(port, question);
  const scene: Scene = {
    program,
    kind,
    ask: send,
    askAll: (questions) => Promise.all(questions.map(send)),
    token: (claims) => tokenOf(provider, claims),
    otherIssuersToken: () => tokenOf(other),
    open: async (token) => {
      const { headers } = await send({ token, body: INITIALIZE });
      const session = headers['mcp-session-id'];
      await send({ token, session, body: { jsonrpc: '2.0', method: 'notifications/initialized' } });
      return session ?? '';
    },
  };

  try {
    return await work(scene);
  } finally {
    program.stop();
    await Promise.all([provider.stop(), other.stop()]);
  }
}

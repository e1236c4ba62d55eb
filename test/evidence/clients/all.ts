/* Every client against the service in every mode that it can speak. */
import { startProcess } from '../../support/process.ts';
import { browserCommand, startPage } from './browser.ts';
import { reportMcp, reportMcpPage } from './mcp-server.ts';
import { startRealProvider } from './provider.ts';
import { tokenFor, walkClient2, walkOauth4webapi, walkSdk1, type Walk } from './walks.ts';

type Mode = 'DISABLED' | 'ALLOWED' | 'REQUIRED';

interface Client {
  readonly name: string;
  readonly proves: boolean;
  readonly walk: (url: string) => Promise<Walk>;
}

const CLIENTS: readonly Client[] = [
  { name: '@modelcontextprotocol/sdk 1.x', proves: false, walk: (url) => walkSdk1(url) },
  { name: '@modelcontextprotocol/client 2.x', proves: false, walk: (url) => walkClient2(url, false) },
  {
    name: '@modelcontextprotocol/client 2.x, DPoP session',
    proves: true,
    walk: (url) => walkClient2(url, true),
  },
  { name: 'oauth4webapi', proves: false, walk: (url) => walkOauth4webapi(url, false) },
  { name: 'oauth4webapi, DPoP', proves: true, walk: (url) => walkOauth4webapi(url, true) },
];

/** A client that proves a key needs DPoP; one that does not is refused where DPoP is required. */
const isAtHome = ({ proves }: Client, mode: Mode): boolean => mode !== (proves ? 'DISABLED' : 'REQUIRED');

let isGood = true;

function report(name: string, found: unknown, expected: unknown): void {
  const isExpected = JSON.stringify(found) === JSON.stringify(expected);
  isGood &&= isExpected;
  console.log(`${name}: ${isExpected ? 'as expected' : JSON.stringify({ found, expected })}`);
}

const walked = (walk: Promise<Walk>): Promise<object> =>
  walk.catch((failure: unknown) => ({ failure: String(failure), cause: String(Object(failure).cause) }));

/** Whether all were answered. */
export async function runAll(port: number): Promise<boolean> {
  const provider = await startRealProvider();
  const command = browserCommand();
  const page = command === undefined ? undefined : await startPage(command);
  // With a path and without one: their documents stand at different places.
  for (const [mode, path] of [
    ['DISABLED', ''],
    ['ALLOWED', ''],
    ['ALLOWED', '/api'],
    ['REQUIRED', '/api'],
  ] as const) {
    const resource = `http://127.0.0.1:${port}${path}`;
    const service = await startProcess({
      environment: {
        PORT: String(port),
        HOST: '127.0.0.1',
        IDP_DOMAIN: provider.domain,
        IDP_ISSUER: provider.issuer,
        IDP_AUDIENCE: resource,
        IDP_DPOP_MODE: mode,
        IDP_TOKEN_TYPE: 'at+jwt',
        IDP_DPOP_NONCE_SECRET: 'a secret of at least thirty-two characters',
        RESOURCE_URL: resource,
        RESOURCE_SCOPES: 'read:messages, admin:access',
        CORS_ALLOWED_ORIGINS: page?.origin ?? '',
      },
    });
    try {
      const url = `http://127.0.0.1:${port}/api/messages`;
      for (const { name, proves, walk } of CLIENTS.filter((client) => isAtHome(client, mode))) {
        const scheme = proves ? 'DPoP' : 'Bearer';
        // The scopes of this route, out of the two that the document names.
        const expected = { status: 200, scheme, scope: 'read:messages', resource, tokenType: scheme };
        const found = await walked(walk(url));
        const { tokenType = '' } = found as Partial<Walk>;
        const isSameType = tokenType.toLowerCase() === scheme.toLowerCase();
        report(
          `${mode} ${path || '/'}: ${name}`,
          { ...found, ...(isSameType && { tokenType: scheme }) },
          expected,
        );
      }
      if (page === undefined || mode === 'REQUIRED') continue;

      const { challenge = '', document, ...rest } = await page.open(url, await tokenFor(url));
      const seen = { scope: /scope="([^"]*)"/.exec(challenge)?.[1], resource: document?.resource, ...rest };
      report(`${mode} ${path || '/'}: a page in Chromium`, seen, {
        scope: 'read:messages',
        resource,
        status: 200,
      });
    } finally {
      await service.stop();
    }
  }
  await reportMcp(report, provider);
  if (page !== undefined) await reportMcpPage(report, provider, page);
  if (page === undefined) {
    console.log('a page in Chromium: skipped, since there is no chromium (apt-get install chromium)');
  }

  page?.stop();
  provider.stop();
  return isGood;
}

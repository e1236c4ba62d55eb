/* Runs a recipe as a stranger would: the file, as a process, with settings in its environment. */
import { fileURLToPath } from 'node:url';
import { startProvider, type Provider } from '../../idp/provider.ts';
import { providerSettings, startProcess, type TestProcess } from '../../support/process.ts';
import type { Environment } from '../../support/settings.ts';

type Fields = Readonly<Record<string, string>>;

/** What `fetch` takes. */
export type Body = NonNullable<RequestInit['body']>;

export interface Recipe {
  readonly provider: Provider;
  readonly service: TestProcess;
  readonly origin: string;
  /** The fields of a request with a token for these scopes. */
  bearer(scope: string, claims?: object): Fields;
  send(method: string, path: string, scope: string, body?: Body, fields?: Fields): Promise<Response>;
  stop(): Promise<void>;
}

export const fileOf = (name: string) => fileURLToPath(new URL(`${name}.mjs`, import.meta.url));

export async function startRecipe(name: string, environment: Environment = {}): Promise<Recipe> {
  const provider = await startProvider();
  const service = await startProcess({
    program: [process.execPath, fileOf(name)],
    environment: { ...providerSettings(provider), HOST: '127.0.0.1', ...environment },
  });
  const origin = `http://127.0.0.1:${service.port}`;

  const bearer = (scope: string, claims = {}) => ({
    Authorization: `Bearer ${provider.issue({ scope, ...claims })}`,
  });

  const send = (method: string, path: string, scope: string, body: Body | null = null, fields = {}) =>
    fetch(origin + path, { method, headers: { ...bearer(scope), ...fields }, body });

  const stop = async () => {
    await service.stop();
    await provider.stop();
  };

  return { provider, service, origin, bearer, send, stop };
}

/** The status, and the `error` of a refusal. */
export async function outcomeOf(response: Promise<Response>): Promise<readonly [number, unknown]> {
  const { status } = await response;
  const text = await (await response).text();
  return [status, text === '' ? undefined : JSON.parse(text).error];
}

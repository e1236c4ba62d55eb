/* Every row of every table × every way to ask for it. A row that is added is tested without a word here. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { tableOf } from '../../src/profiles/tables.ts';
import { policyA } from '../../src/profiles/a.ts';
import { startProvider, type Provider } from '../idp/provider.ts';
import type { Answer, Ask } from '../support/client.ts';
import { settingsWith } from '../support/caller.ts';
import { startService, type TestService } from '../support/service.ts';

type Claims = Readonly<Record<string, unknown>>;

/** The claims that pass a guard, and sets of claims that do not. */
interface Demand {
  readonly held: Claims;
  readonly missing: readonly Claims[];
}

/** What guards of free form demand, by what they say they demand; each new one needs a line here. */
const CHECKS: Readonly<Record<string, Demand>> = {
  'subscription is premium and verified is true': {
    held: { subscription: 'premium', verified: true },
    missing: [
      {},
      { subscription: 'premium' },
      { verified: true },
      { subscription: 'premium', verified: 'true' },
    ],
  },
};

const words = (text = '') => text.split(' ');
/** Each list that lacks one of the values. */
const lackingOne = (values: readonly string[]) =>
  values.map((value) => values.filter((other) => other !== value));

function demandOf(guard: string): Demand {
  const [, anyOf] = /^any scope of (.+)$/.exec(guard) ?? [];
  if (anyOf !== undefined) {
    return {
      held: { scope: words(anyOf)[0] },
      missing: [{}, { scope: 'other' }, { scope: anyOf.replaceAll(' ', '\t') }],
    };
  }
  const [, scopes] = /^scope (.+)$/.exec(guard) ?? [];
  if (scopes !== undefined) {
    const lacking = lackingOne(words(scopes)).map((some) => ({ scope: some.join(' ') }));
    return { held: { scope: scopes }, missing: [{}, ...lacking, { scope: `x${scopes}` }] };
  }
  const [, claim = '', value] = /^claim (\S+) equals (.+)$/.exec(guard) ?? [];
  if (value !== undefined)
    return { held: { [claim]: value }, missing: [{}, { [claim]: `${value}x` }, { [claim]: null }] };
  const [, list = '', values] = /^claim (\S+) includes (.+)$/.exec(guard) ?? [];
  if (values !== undefined) {
    return {
      held: { [list]: words(values) },
      missing: [{}, ...lackingOne(words(values)).map((some) => ({ [list]: some }))],
    };
  }
  const found = CHECKS[guard.replace(/^claims /, '')];
  if (found === undefined) throw new Error(`say in CHECKS which claims pass the guard "${guard}"`);
  return found;
}

const isScopeGuard = (guard: string) => /^(any )?scope /.test(guard);
const SCOPE_DESCRIPTIONS = /^the token (lacks a required scope|has none of the required scopes)$/;
const INSUFFICIENT =
  /^Bearer realm="api", error="insufficient_scope", error_description="([^"]+)"(?:, scope="([^"]+)")?$/;
const METHODS = ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND'];

const ENVIRONMENTS = [
  { PROFILE: 'A' },
  { PROFILE: 'A', SCOPE_POLICY: 'true' },
  { PROFILE: 'B' },
  { PROFILE: 'B', ERROR_DETAIL: 'true' },
] as const;

let provider: Provider;
before(async () => {
  provider = await startProvider();
});
after(() => provider.stop());

for (const environment of ENVIRONMENTS) {
  describe(JSON.stringify(environment), () => {
    const settings = settingsWith(environment);
    let service: TestService;
    before(async () => {
      service = await startService({ provider, environment: { ...environment, IDP_DPOP_MODE: 'DISABLED' } });
    });
    after(() => service.stop());

    for (const { pattern, access } of tableOf(settings).rows) {
      const path = pattern.replace(/\{\w+\}/g, 'any%2Fthing');
      const isPoliced =
        settings.scopePolicy &&
        policyA.some(({ prefix }) => `${pattern}/`.startsWith(`/${prefix.join('/')}/`));
      const guards =
        access.credentials === 'required' && access.name !== 'authenticated' ? access.name.split(', ') : [];
      const demands = guards.map(demandOf);
      const held = Object.assign({}, ...demands.map((demand) => demand.held)) as Claims;
      const good = () => provider.issue(held);
      const expired = () => provider.issue({ ...held, exp: Math.floor(service.clock.now() / 1000) });
      const forged = () => good().replace(/.{8}$/, (end) => (end === 'AAAAAAAA' ? 'BBBBBBBB' : 'AAAAAAAA'));

      /** Asks by GET and by HEAD, and makes sure that they answer alike. */
      async function ask(request: Ask = {}): Promise<Answer> {
        const [answer, head] = await Promise.all([
          service.ask(path, request),
          service.ask(path, { ...request, method: 'HEAD' }),
        ]);
        const { date: _, ...fields } = answer.headers;
        const { date: __, ...headFields } = head.headers;
        assert.deepEqual(
          [head.status, headFields, head.text],
          [answer.status, fields, ''],
          'HEAD differs from GET',
        );
        assert.deepEqual(
          [fields['cache-control'], fields['x-content-type-options']],
          ['no-store', 'nosniff'],
        );
        return answer;
      }

      async function refuses(request: Ask, error: string, challenge: string): Promise<void> {
        const answer = await ask(request);
        assert.equal(answer.status, 401);
        const message =
          environment.PROFILE === 'B' && 'ERROR_DETAIL' in environment && error === 'invalid_token'
            ? 'The access token is invalid or has expired'
            : 'Authentication required';
        assert.equal(answer.text, JSON.stringify({ error, message }));
        assert.deepEqual(answer.challenges, [challenge]);
      }
      const invalid = (description: string) =>
        `Bearer realm="api", error="invalid_token", error_description="${description}"`;

      test(`${pattern} answers when all is held`, async () => {
        const answer = await ask({ token: good() });
        assert.equal(answer.status, 200);
        assert.deepEqual(answer.challenges, []);
      });

      if (access.credentials === 'required') {
        test(`${pattern} refuses a caller without credentials`, () =>
          refuses({}, 'unauthorized', 'Bearer realm="api"'));
        test(`${pattern} refuses another scheme`, () =>
          refuses({ headers: { Authorization: 'Basic dTpw' } }, 'unauthorized', 'Bearer realm="api"'));
        test(`${pattern} refuses a token in the query, and a probe's name for a login [RFC 9700, G3, G6]`, async () => {
          const answer = await service.ask(`${path}?access_token=${good()}`, {
            headers: { 'User-Agent': 'kube-probe/1.30' },
          });
          assert.deepEqual([answer.status, answer.body.error], [401, 'unauthorized']);
        });
      } else {
        test(`${pattern} answers a caller without credentials`, async () =>
          assert.equal((await ask()).status, 200));
      }

      if (access.credentials === 'ignored') {
        test(`${pattern} ignores credentials, however bad`, async () => {
          for (const Authorization of [
            '',
            'Basic x',
            'Bearer',
            `Bearer ${expired()}`,
            ['Bearer a', 'Bearer b'],
          ]) {
            const { status, text } = await ask({ headers: { Authorization } });
            assert.deepEqual([status, text], [200, (await ask()).text]);
          }
        });
      } else {
        test(`${pattern} refuses a token that has expired`, () =>
          refuses({ token: expired() }, 'invalid_token', invalid('the token has expired')));
        test(`${pattern} refuses a forged signature [D6]`, () =>
          refuses({ token: forged() }, 'invalid_token', invalid('the token signature does not match')));
        test(`${pattern} refuses two Authorization fields`, async () => {
          const answer = await ask({ headers: { Authorization: [`Bearer ${good()}`, `Bearer ${good()}`] } });
          assert.deepEqual([answer.status, answer.body.error], [400, 'invalid_request']);
        });
      }

      for (const [index, guard] of guards.entries()) {
        const others = Object.assign(
          {},
          ...demands.filter((_, at) => at !== index).map((demand) => demand.held),
        ) as Claims;
        for (const missing of demands[index]?.missing ?? []) {
          test(`${pattern} refuses ${JSON.stringify(missing)} for the guard "${guard}"`, async () => {
            const answer = await ask({ token: provider.issue({ ...others, ...missing }) });
            assert.equal(answer.status, 403);
            const [, description = '', scope] = INSUFFICIENT.exec(answer.challenges.join('|')) ?? [];
            const required = isScopeGuard(guard)
              ? words(guard.replace(/^(any scope of|scope) /, ''))
              : undefined;
            assert.equal(scope, required?.join(' '));
            assert.match(description, required === undefined ? /^the claims? / : SCOPE_DESCRIPTIONS);
            const body = settings.errorDetail
              ? {
                  error: 'forbidden',
                  message: `Missing permission: ${description}`,
                  required_scopes: required,
                }
              : { error: 'insufficient_scope', message: description };
            assert.equal(answer.text, JSON.stringify(body));
          });
        }
      }

      const whom = isPoliced ? 'only of callers that its policy admits' : 'before it reads a token';
      test(`${pattern} refuses another method ${whom}`, async () => {
        for (const method of METHODS) {
          const refused = [405, 'GET, HEAD', 'method_not_allowed'];
          for (const [request, policed] of [
            [{ method, token: good() }, refused],
            [{ method, token: expired() }, [401, undefined, 'invalid_token']],
            [{ method }, [401, undefined, 'unauthorized']],
          ] as const) {
            const { status, headers, body } = await service.ask(path, request);
            assert.deepEqual([status, headers.allow, body.error], isPoliced ? policed : refused, method);
          }
        }
      });

      test(`${pattern} is not found under another spelling, whoever calls [G2]`, async () => {
        const beginnings = ['/api//', '/api%2F', '/API/', '/api/x/../'].map((beginning) =>
          path.replace('/api/', beginning),
        );
        const spellings = [`${path}/`, `${path}//`, `/${path}`, `${path}/.`, `${path}/%2e`, ...beginnings];
        for (const spelling of spellings) {
          const answer = await service.ask(spelling, { token: expired() });
          assert.deepEqual(
            [answer.status, answer.body.error, answer.challenges],
            [404, 'not_found', []],
            spelling,
          );
        }
      });

      test(`${pattern} is the same under encoded letters and with a query`, async () => {
        const token = good();
        for (const spelling of [
          path.replace('/api/', '/%61p%69/'),
          `${path}?`,
          `${path}?x=/api/public`,
          `${path}?/../..`,
        ]) {
          assert.equal((await service.ask(spelling, { token })).status, 200, spelling);
          assert.equal(
            (await service.ask(spelling)).status,
            access.credentials === 'required' ? 401 : 200,
            spelling,
          );
        }
      });
    }
  });
}

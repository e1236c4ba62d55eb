/* Routes as an OpenAPI 3.1 document: what it lists, and what it refuses. `npm run evidence openapi` holds it
   against the published schema, a linter and real schemas. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { claims, decision } from '../../../src/decisions.ts';
import { openApi, type OpenApiDetails, type OpenApiInfo } from '../../../src/openapi.ts';
import { authenticated, needs, open, optional } from '../../../src/gate/rules/access.ts';
import { anyScope, claimCheck, claimEquals, scope } from '../../../src/gate/rules/guards.ts';
import { recentLogin } from '../../../src/gate/rules/recent-login.ts';
import { mount } from '../../../src/service/fetch/mount.ts';
import { bytes, json, query } from '../../../src/service/routes/inputs.ts';
import { del, get, patch, post, put, under, upstream } from '../../../src/service/routes/route.ts';
import type { Access } from '../../../src/gate/rules/access.ts';
import type { Route, Routes } from '../../../src/service/routes/route.ts';
import type { Caller } from '../../../src/verify/caller.ts';

const INFO = { title: 'Orders', version: '1.2.3' };

const handler = () => ({});

/** A schema that implements Standard JSON Schema too. */
function described(input: object, output: object = input) {
  const targets: unknown[] = [];

  const write = (side: object) => (options: unknown) => {
    targets.push(options);
    return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...side };
  };

  const schema = {
    '~standard': {
      version: 1 as const,
      vendor: 'test',
      validate: (value: unknown) => ({ value }),
      jsonSchema: { input: write(input), output: write(output) },
    },
  };
  return { schema, targets };
}

const PLAIN = { '~standard': { version: 1 as const, validate: (value: unknown) => ({ value }) } };

const THROWS = {
  '~standard': {
    ...PLAIN['~standard'],
    jsonSchema: {
      input() {
        throw new Error('a transformation');
      },
    },
  },
};

const ORDER = { type: 'object', properties: { item: { type: 'string' } }, required: ['item'] };

const WRITES_TEXT = { '~standard': { ...PLAIN['~standard'], jsonSchema: { input: () => 'string' } } };

/** Keywords whose values are data; as names of properties they are not. */
const VALUE_NAMES = ['const', 'default', 'enum', 'example', 'examples'];

const documentOf = (routes: readonly Route[], details?: OpenApiDetails, others: Partial<Routes> = {}): any =>
  openApi({ routes, ...others }, INFO, details);

/** The only operation of the only path. */
function operationOf(route: Route, details?: OpenApiDetails, others?: Partial<Routes>): any {
  const [item] = Object.values<any>(documentOf([route], details, others).paths);
  return Object.values(item)[0];
}

const errorsOf = (operation: any, status: number) =>
  operation.responses[status]?.content['application/json'].schema.properties.error.enum;

test('is an OpenAPI 3.1 document, a plain object with what info says', () => {
  const license = { name: 'MIT', identifier: 'MIT' };
  const servers = [{ url: 'https://api.example/' }];
  const info: OpenApiInfo = { ...INFO, description: 'of a shop', license, servers, summary: undefined };
  const document = openApi({ routes: [get('/a', open, handler)] }, info);
  assert.match(document.openapi, /^3\.1\.\d$/);
  assert.deepEqual(document.info, { ...INFO, description: 'of a shop', license });
  assert.deepEqual(document.servers, servers);
  assert.deepEqual(JSON.parse(JSON.stringify(document)), document);
  assert.deepEqual(openApi({ routes: [] }, INFO).servers, [{ url: '/' }]);
});

test('lists each route as an operation, neither HEAD nor mounts', () => {
  const document = documentOf([
    get('/orders/{id}', authenticated, handler),
    put('/orders/{id}', authenticated, handler),
    post('/orders', authenticated, handler),
    patch('/orders', authenticated, handler),
    del('/', authenticated, handler),
    mount('/graphql', authenticated, () => new Response()),
  ]);
  const listed = Object.entries<object>(document.paths).map(([path, item]) => [path, Object.keys(item)]);
  assert.deepEqual(listed, [
    ['/orders/{id}', ['get', 'put']],
    ['/orders', ['post', 'patch']],
    ['/', ['delete']],
  ]);
});

test('describes a policy of forward-auth too', () => {
  const { security } = operationOf(get('/a', needs(scope('x')), upstream));
  assert.deepEqual(security, [{ token: ['x'] }]);
});

test('joins paths that differ in the names of their parameters alone', () => {
  const { paths } = documentOf([
    get('/a/{one}/b', open, handler),
    post('/a/{other}/b', open, handler),
    get('/A/{one}', open, handler),
    get('/a/{one}', open, handler),
    get('/a/{one}/b/{two}', open, handler),
    post('/a/{other}/b/{another}', open, handler),
  ]);
  assert.deepEqual(Object.keys(paths), ['/a/{one}/b', '/A/{one}', '/a/{one}', '/a/{one}/b/{two}']);
  const names = ['get', 'post'].map((method) => paths['/a/{one}/b'][method].parameters[0].name);
  assert.deepEqual(names, ['one', 'one']);
});

test('has a required parameter for each of the pattern', () => {
  const { parameters } = operationOf(get('/a/{one}/{two}', open, handler));
  const text = { type: 'string' };
  assert.deepEqual(parameters, [
    { name: 'one', in: 'path', required: true, schema: text },
    { name: 'two', in: 'path', required: true, schema: text },
  ]);
  assert.ok(!('parameters' in operationOf(get('/a', open, handler))));
});

describe('operations', () => {
  test('have an id of method and pattern, unless the details have one, and never the same twice', () => {
    const document = documentOf(
      [
        get('/a/{id}', open, handler),
        get('/a/by/id', open, handler),
        get('/a-by', open, handler),
        get('/', open, handler),
        get('/é', open, handler),
        get('/b', open, handler),
        get('/c/{id}/d', open, handler),
        get('/v2/myOrders/line_items/{id}/{part}', open, handler),
      ],
      { 'GET /b': { operationId: 'getRoot' } },
    );
    const ids = Object.values<any>(document.paths).map(({ get: operation }) => operation.operationId);
    assert.deepEqual(ids, [
      'getAById',
      'getAById2',
      'getABy',
      'getRoot2',
      'getRoot3',
      'getRoot',
      'getCByIdD',
      'getV2MyOrdersLineItemsByIdByPart',
    ]);
  });

  test('have what the details say', () => {
    const details = {
      summary: 'List',
      description: 'all of them',
      tags: [],
      deprecated: true,
      response: described(ORDER, { type: 'array' }).schema,
    };
    const operation = operationOf(get('/a', open, handler), { 'GET /a': details });
    const { summary, description, tags, deprecated, responses } = operation;
    const { response: _, ...others } = details;
    assert.deepEqual({ summary, description, tags, deprecated }, others);
    assert.deepEqual(responses[200].content, { 'application/json': { schema: { type: 'array' } } });
    assert.ok(!('response' in operation));
    const kept = operationOf(get('/a', open, handler), { 'GET /a': { deprecated: false } });
    assert.equal(kept.deprecated, false);
  });

  test('say which responses are without error: 200 for GET and for a schema of the details, else any 2XX', () => {
    const any = { 'application/json': { schema: {} } };
    const known = { description: 'Success', content: any };
    assert.deepEqual(operationOf(get('/a', open, handler)).responses[200], known);
    const { responses } = operationOf(post('/a', open, handler));
    assert.deepEqual([responses['2XX'], responses[200]], [{ description: 'Success' }, undefined]);
    const details = { 'POST /a': { response: PLAIN } };
    assert.deepEqual(operationOf(post('/a', open, handler), details).responses[200], known);
  });

  test('have the method and the pattern in place of a summary that is undefined', () => {
    const { summary } = operationOf(get('/a', open, handler), { 'GET /a': { summary: undefined } });
    assert.equal(summary, 'GET /a');
  });

  test('name the schema of their response in the components when it has definitions', () => {
    const { schema } = described(ORDER, { $ref: '#/$defs/A', $defs: { A: { type: 'string' } } });
    const document = openApi({ routes: [get('/a', open, handler)] }, INFO, {
      'GET /a': { response: schema },
    }) as any;
    const { content } = document.paths['/a'].get.responses[200];
    assert.deepEqual(content['application/json'].schema, { $ref: '#/components/schemas/getAResponse' });
    assert.ok('getAResponse' in document.components.schemas);
  });
});

describe('inputs', () => {
  test('are those of the schema, in its dialect, written for what goes in', () => {
    const { schema, targets } = described(ORDER, { type: 'string' });
    const { requestBody } = operationOf(post('/a', open, json(schema), handler));
    assert.deepEqual(requestBody, { required: true, content: { 'application/json': { schema: ORDER } } });
    assert.deepEqual(
      targets.map((given) => Object(given).target),
      ['draft-2020-12'],
    );
  });

  test('with a type that JSON does not have keep their other members, if the library can do that', () => {
    const { schema, targets } = described(ORDER);
    operationOf(post('/a', open, json(schema), handler));
    // zod's name for it. ArkType does so without, and others ignore it.
    assert.deepEqual(Object(targets[0]).libraryOptions, { unrepresentable: 'any' });
  });

  test('are copies: what a schema changes later, or has without a value, is not in the document', () => {
    const written = { type: 'object', title: undefined, properties: { a: { type: 'string' } } };
    const { schema } = described(written);
    const operation = operationOf(post('/a', open, json(schema), handler));
    written.properties.a.type = 'number';
    const shown = { type: 'object', properties: { a: { type: 'string' } } };
    assert.deepEqual(operation.requestBody.content['application/json'], { schema: shown });
  });

  for (const [what, input] of [
    ['without a schema', json()],
    ['whose schema cannot write JSON Schema', json(PLAIN)],
    ['whose schema throws', json(THROWS)],
    ['whose schema writes text', json(WRITES_TEXT)],
  ] as const) {
    test(`are any JSON for a body ${what}`, () => {
      const { requestBody } = operationOf(post('/a', open, input, handler));
      assert.deepEqual(requestBody.content, { 'application/json': { schema: {} } });
    });
  }

  test('have the media types of the route; bytes have no schema', () => {
    const types = ['application/json', 'application/merge-patch+json'] as const;
    const merged = operationOf(patch('/a', open, json(undefined, { types: [...types] }), handler));
    assert.deepEqual(Object.keys(merged.requestBody.content), types);
    const upload = operationOf(put('/a', open, bytes({ types: ['image/png'] }), handler));
    assert.deepEqual(upload.requestBody.content, { 'image/png': {} });
    assert.deepEqual(operationOf(put('/a', open, bytes(), handler)).requestBody.content, { '*/*': {} });
  });

  test('are a parameter for each member of the query', () => {
    const { schema } = described({
      type: 'object',
      properties: {
        after: { type: 'string' },
        tag: { type: 'array', items: { type: 'string' } },
        by: { type: 'integer' },
      },
      required: ['tag', 'by'],
      additionalProperties: false,
      title: 'Page',
      description: 'which part of the list',
    });
    const { parameters } = operationOf(get('/a/{id}', open, query(schema), handler));
    assert.deepEqual(parameters.slice(1), [
      { name: 'after', in: 'query', required: false, schema: { type: 'string' } },
      { name: 'tag', in: 'query', required: true, schema: { type: 'array', items: { type: 'string' } } },
      { name: 'by', in: 'query', required: true, schema: { type: 'integer' } },
    ]);
  });

  const PAGE = { type: 'object', properties: { size: { type: 'integer' } } };

  /** A reference to an `$anchor` stays as it is. */
  const DEFINITIONS = { Tag: { $anchor: 'tag', type: 'string' } };

  for (const [what, written, shown] of [
    ['no JSON Schema', undefined, { type: 'object' }],
    ['alternatives', { anyOf: [ORDER, ORDER] }, { anyOf: [ORDER, ORDER] }],
    ['members and one of two', { ...PAGE, oneOf: [ORDER, {}] }, { ...PAGE, oneOf: [ORDER, {}] }],
    ['members and any of two', { ...PAGE, anyOf: [ORDER, {}] }, { ...PAGE, anyOf: [ORDER, {}] }],
    ['members of two objects', { ...PAGE, allOf: [ORDER] }, { ...PAGE, allOf: [ORDER] }],
    ['members and $defs', { ...PAGE, $defs: DEFINITIONS }, { ...PAGE, $defs: DEFINITIONS }],
    ['members and definitions', { ...PAGE, definitions: DEFINITIONS }, { ...PAGE, definitions: DEFINITIONS }],
    ['members and another document', { ...PAGE, $ref: 'b#/x' }, { ...PAGE, $ref: 'b#/x' }],
    ['members and a required other', { ...PAGE, required: ['at'] }, { ...PAGE, required: ['at'] }],
    [
      'members, one of which is required, and a required other',
      { ...PAGE, required: ['size', 'at'] },
      { ...PAGE, required: ['size', 'at'] },
    ],
    [
      'members and others',
      { ...PAGE, additionalProperties: ORDER },
      { ...PAGE, additionalProperties: ORDER },
    ],
    [
      'members that are the same',
      { ...PAGE, properties: { a: { type: 'string' }, b: { $ref: '#/properties/a' } } },
      { $ref: '#/components/schemas/getAQuery' },
    ],
    ['members and a default', { ...PAGE, default: { size: 9 } }, { ...PAGE, default: { size: 9 } }],
    ['members and how many', { ...PAGE, minProperties: 1 }, { ...PAGE, minProperties: 1 }],
    ['another document', { $ref: 'https://schemas.example/page' }, { $ref: 'https://schemas.example/page' }],
  ] as const) {
    test(`are one parameter, whose members count, for a query of ${what}`, () => {
      const schema = written === undefined ? PLAIN : described(written, ORDER).schema;
      const { parameters } = operationOf(get('/a', open, query(schema), handler));
      assert.deepEqual(parameters, [
        { name: 'query', in: 'query', style: 'form', explode: true, schema: shown },
      ]);
    });
  }

  test('are one parameter that refers to the components for a query with definitions', () => {
    const members = { tag: { $ref: '#/$defs/Tag' } };
    const { schema } = described({ type: 'object', properties: members, $defs: { Tag: { type: 'string' } } });
    const document = openApi({ routes: [get('/a', open, query(schema), handler)] }, INFO) as any;
    const [{ schema: shown }] = document.paths['/a'].get.parameters;
    assert.deepEqual(shown, { $ref: '#/components/schemas/getAQuery' });
    assert.deepEqual(document.components.schemas.getAQuery.properties, {
      tag: { $ref: '#/components/schemas/getAQuery/$defs/Tag' },
    });
  });

  test('are those of a schema that writes as a method, which reads its own members', () => {
    const jsonSchema = {
      written: ORDER,
      input() {
        return this.written;
      },
    };
    const schema = { '~standard': { ...PLAIN['~standard'], jsonSchema } };
    const { requestBody } = operationOf(post('/a', open, json(schema), handler));
    assert.deepEqual(requestBody.content, { 'application/json': { schema: ORDER } });
  });

  test('have no reference where $ref is no text', () => {
    const odd = { type: 'object', 'x-odd': { $ref: { $ref: 7 } } };
    const { requestBody } = operationOf(post('/a', open, json(described(odd).schema), handler));
    assert.deepEqual(requestBody.content['application/json'].schema, odd);
  });

  test('have references that lead to the same place of the document, and only where they are references', () => {
    const node = {
      type: 'object',
      properties: {
        children: { type: 'array', items: { $ref: '#' } },
        kind: { $ref: '#/$defs/Kind' },
        other: { $ref: 'https://schemas.example/other#/a' },
        described: { description: '#/kept' },
        $ref: { type: 'string', default: '#/kept' },
        value: Object.fromEntries(VALUE_NAMES.map((name) => [name, [{ $ref: '#/kept' }]])),
        either: { anyOf: [{ $ref: '#/$defs/Kind' }] },
        named: { $ref: '#kind' },
        ...Object.fromEntries(VALUE_NAMES.map((name) => [name, { $ref: '#/$defs/Kind' }])),
      },
      $defs: { Kind: { $anchor: 'kind', type: 'string' }, default: { items: { $ref: '#' } } },
      ...Object.fromEntries(
        ['definitions', 'dependentSchemas', 'patternProperties'].map((name) => [
          name,
          { enum: { $ref: '#' } },
        ]),
      ),
    };
    const document = documentOf([post('/a', open, json(described(node).schema), handler)], {
      'POST /a': { operationId: 'add' },
    });
    const at = '#/components/schemas/addBody';
    assert.deepEqual(document.paths['/a'].post.requestBody.content['application/json'].schema, { $ref: at });
    const { addBody } = document.components.schemas;
    assert.deepEqual(addBody.properties, {
      ...node.properties,
      children: { type: 'array', items: { $ref: at } },
      kind: { $ref: `${at}/$defs/Kind` },
      either: { anyOf: [{ $ref: `${at}/$defs/Kind` }] },
      ...Object.fromEntries(VALUE_NAMES.map((name) => [name, { $ref: `${at}/$defs/Kind` }])),
    });
    assert.deepEqual(addBody.$defs, { ...node.$defs, default: { items: { $ref: at } } });
    for (const name of ['definitions', 'dependentSchemas', 'patternProperties']) {
      assert.deepEqual(addBody[name], { enum: { $ref: at } });
    }
  });

  test('stand under a name that a reference may have, whatever the operationId is, each under its own', () => {
    const schema = described({ type: 'object', properties: { a: { $ref: '#' } } }).schema;
    const all = ['/a', '/b', '/c', '/d'];
    const routes = all.map((path) => post(path, open, json(schema), handler));
    const { paths, components } = documentOf(routes, {
      'POST /a': { operationId: 'trees/create it' },
      'POST /b': { operationId: 'trees create/it' },
      'POST /c': { operationId: 'trees create it' },
      'POST /d': { operationId: 'v1.trees-create' },
    });
    const names = [...['', '_', '__'].map((end) => `trees_create_itBody${end}`), 'v1.trees-createBody'];
    assert.deepEqual(Object.keys(components.schemas), names);
    const refs = all.map((path) => paths[path].post.requestBody.content['application/json'].schema.$ref);
    assert.deepEqual(
      refs,
      names.map((name) => `#/components/schemas/${name}`),
    );
    assert.deepEqual(components.schemas[names[1]!].properties, { a: { $ref: refs[1] } });
  });
});

describe('security', () => {
  const bearer = { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' };

  const cases: readonly (readonly [what: string, access: Access<Caller | undefined>, security: unknown])[] = [
    ['open', open, []],
    ['optional', optional, [{}, { token: [] }]],
    ['authenticated', authenticated, [{ token: [] }]],
    ['a claim', needs(claimEquals('a', 1)), [{ token: [] }]],
    ['a claim in the words of anyScope', needs(claimCheck('any scope of x', () => true)), [{ token: [] }]],
    ['scopes', needs(scope('a', 'b'), scope('b', 'c')), [{ token: ['a', 'b', 'c'] }]],
    ['any scope', needs(anyScope('a', 'b')), [{ token: ['a'] }, { token: ['b'] }]],
    [
      'any of two, and others',
      needs(anyScope('a', 'b'), scope('c'), anyScope('d', 'e')),
      [
        { token: ['a', 'c', 'd'] },
        { token: ['a', 'c', 'e'] },
        { token: ['b', 'c', 'd'] },
        { token: ['b', 'c', 'e'] },
      ],
    ],
  ];
  for (const [what, access, security] of cases) {
    test(`of ${what} is ${JSON.stringify(security)}`, () =>
      assert.deepEqual(operationOf(get('/a', access, handler)).security, security));
  }

  test('has a scheme only if a route needs it; with an issuer, one that says where tokens come from', () => {
    const routes = [get('/a', authenticated, handler)];
    assert.deepEqual(documentOf(routes).components.securitySchemes, { token: bearer });
    assert.deepEqual(documentOf([get('/a', open, handler)]).components, {});
    const { components } = documentOf([get('/b', open, handler), ...routes]);
    assert.deepEqual(components, { securitySchemes: { token: bearer } });
    for (const issuer of ['https://idp.example', 'https://idp.example/']) {
      const { info, components } = openApi({ routes }, { ...INFO, issuer });
      assert.deepEqual(info, INFO);
      assert.deepEqual(components.securitySchemes, {
        token: {
          type: 'openIdConnect',
          openIdConnectUrl: 'https://idp.example/.well-known/openid-configuration',
        },
      });
    }
  });

  test('has the scheme that an operation names, also where a rule alone needs a token [§29]', () => {
    const rules = [under('/a', authenticated)];
    const { components } = documentOf([get('/a', open, handler)], {}, { rules });
    assert.deepEqual(components, { securitySchemes: { token: bearer } });
  });

  test('counts the rules that cover each path of a route, and no others', () => {
    const rules = [
      under('/admin', needs(scope('admin'))),
      under('/admin/keys', authenticated),
      under('/admin/x', needs(scope('x'))),
    ];
    const security = (route: Route) => operationOf(route, {}, { rules }).security;
    assert.deepEqual(security(get('/admin/{id}', open, handler)), [{ token: ['admin'] }]);
    assert.deepEqual(security(get('/admin', needs(scope('x')), handler)), [{ token: ['admin', 'x'] }]);
    assert.deepEqual(security(get('/{any}/keys', open, handler)), []);
    assert.deepEqual(security(get('/administration', open, handler)), []);
  });

  test('requires a token where a rule does, also for a route that is optional [§29]', () => {
    const rules = [under('/a', authenticated)];
    const { security } = operationOf(get('/a', optional, handler), {}, { rules });
    assert.deepEqual(security, [{ token: [] }]);
  });
});

describe('refusals', () => {
  const refusalsOf = (route: Route) => {
    const operation = operationOf(route);
    const statuses = Object.keys(operation.responses).filter((status) => Number(status) >= 400);
    return Object.fromEntries(statuses.map((status) => [status, errorsOf(operation, Number(status))]));
  };

  const always = {
    400: ['invalid_request'],
    408: ['request_timeout'],
    417: ['expectation_failed'],
    431: ['header_fields_too_large'],
    500: ['server_error'],
    503: ['temporarily_unavailable'],
  };
  const refused = ['invalid_token', 'invalid_dpop_proof', 'use_dpop_nonce'];

  test('are those that each route can give', () =>
    assert.deepEqual(refusalsOf(get('/a', open, handler)), always));

  test('are those of credentials, where they are read, also where they may be missing', () => {
    const read = { ...always, 401: ['unauthorized', ...refused] };
    for (const access of [optional, authenticated]) {
      assert.deepEqual(refusalsOf(get('/a', access, handler)), read);
    }
  });

  test('are those of guards: 403, and for a login 401', () => {
    const guarded = {
      ...always,
      401: ['unauthorized', ...refused],
      403: ['insufficient_scope', 'forbidden'],
    };
    const guards = [scope('x'), claimEquals('a', 1), claims(PLAIN)];
    for (const guard of guards) {
      assert.deepEqual(refusalsOf(get('/a', needs(guard), handler)), guarded);
    }
    assert.deepEqual(refusalsOf(get('/a', needs(decision('may', () => true)), handler)), guarded);
    assert.deepEqual(refusalsOf(get('/a', needs(scope('x'), claimEquals('a', 1)), handler)), guarded);
    const login = refusalsOf(get('/a', needs(recentLogin({ maxAgeSeconds: 1 })), handler));
    assert.deepEqual(login[401], ['unauthorized', ...refused, 'insufficient_user_authentication']);
    assert.equal(login[403], undefined);
  });

  test('are those of query and body', () => {
    const body = { ...always, 413: ['content_too_large'], 415: ['unsupported_media_type'] };
    const invalid = ['invalid_request', 'invalid_body'];
    assert.deepEqual(refusalsOf(post('/a', open, json(), handler)), { ...body, 400: invalid });
    assert.deepEqual(refusalsOf(post('/a', open, bytes(), handler)), { ...body, 400: invalid });
    assert.deepEqual(refusalsOf(post('/a', open, query(PLAIN), json(PLAIN), handler)), {
      ...body,
      400: ['invalid_request', 'invalid_query', 'invalid_body'],
      422: ['unprocessable_content'],
    });
  });

  test('have the fields and members that clients read', () => {
    const { responses } = operationOf(post('/a', needs(scope('x')), query(PLAIN), json(PLAIN), handler));
    const headers = Object.entries<any>(responses).map(([status, one]) => [
      status,
      Object.keys(one.headers ?? {}).join(),
    ]);
    assert.deepEqual(Object.fromEntries(headers), {
      400: 'WWW-Authenticate',
      401: 'WWW-Authenticate',
      403: 'WWW-Authenticate',
      408: '',
      413: '',
      415: '',
      417: '',
      422: '',
      431: '',
      500: '',
      503: 'Retry-After',
      '2XX': '',
    });

    const membersOf = (status: number) =>
      Object.keys(responses[status].content['application/json'].schema.properties).join();

    assert.deepEqual([400, 403, 422, 503].map(membersOf), [
      'error,message,issues',
      'error,message,required_scopes',
      'error,message,issues',
      'error,message',
    ]);
    const path = { type: 'array', items: { type: ['string', 'number'] } };
    const properties = { path, message: { type: 'string' } };
    assert.deepEqual(responses[422].content['application/json'].schema, {
      type: 'object',
      required: ['error', 'message'],
      properties: {
        error: { type: 'string', enum: ['unprocessable_content'] },
        message: { type: 'string' },
        issues: { type: 'array', items: { type: 'object', required: ['path', 'message'], properties } },
      },
    });
  });

  test('have a description of their own for each status', () => {
    const { responses } = operationOf(post('/a', needs(scope('x')), query(PLAIN), json(PLAIN), handler));
    const descriptions = Object.values<any>(responses).map(({ description }) => description);
    assert.equal(new Set(descriptions).size, descriptions.length);
    assert.ok(!descriptions.includes('Refused'));
  });
});

describe('throws a TypeError', () => {
  const routes = [get('/a', open, handler), get('/b', open, handler), get('/d', open, handler)];

  const cases: readonly (readonly [what: string, make: () => unknown, message: RegExp])[] = [
    [
      'for details of no route',
      () => documentOf(routes, { 'GET /c': {} }),
      /^details: GET \/c is no route; write one of GET \/a, GET \/b, GET \/d$/,
    ],
    [
      'for details by the name of an inherited member',
      () => documentOf(routes, { 'GET /a': { constructor: 'x' } as never }),
      /constructor is unknown/,
    ],
    ['for a key in another case', () => documentOf(routes, { 'get /a': {} }), /get \/a is no route/],
    [
      'for unknown details',
      () => documentOf(routes, { 'GET /a': { sumary: 'x' } as never }),
      /^GET \/a: sumary is unknown; write summary, description, tags, operationId, deprecated, response$/,
    ],
    ...[
      { summary: 5 },
      { description: '' },
      { tags: 'orders' },
      { tags: [5] },
      { operationId: 5 },
      { deprecated: 1 },
    ].map(
      (details) =>
        [
          `for ${JSON.stringify(details)}`,
          () => documentOf(routes, { 'GET /a': details as never }),
          new RegExp(`GET /a: ${Object.keys(details)[0]}: `),
        ] as const,
    ),
    ...[{ contact: 'me' }, { license: [] }, { summary: 5 }, { description: 5 }, { termsOfService: 5 }].map(
      (member) =>
        [
          `for ${JSON.stringify(member)} in info`,
          () => openApi({ routes }, { ...INFO, ...member } as never),
          new RegExp(`^info: ${Object.keys(member)[0]}: must be (?:an object|text)$`),
        ] as const,
    ),
    ...[{}, null, ''].map(
      (response) =>
        [
          `for ${JSON.stringify(response)} as a response, which is no schema`,
          () => documentOf(routes, { 'GET /a': { response: response as never } }),
          /schema/,
        ] as const,
    ),
    [
      'for an operationId twice',
      () => documentOf(routes, { 'GET /a': { operationId: 'x' }, 'GET /b': { operationId: 'x' } }),
      /GET \/b: the operationId is not unique/,
    ],
    [
      'without a title',
      () => openApi({ routes }, { version: '1' } as never),
      /^openApi needs an info with a title and a version$/,
    ],
    ['without a version', () => openApi({ routes }, { title: 'x' } as never), /title and a version/],
    ['for a title that is no text', () => openApi({ routes }, { ...INFO, title: 5 } as never), /title and/],
    [
      'for a version that is no text',
      () => openApi({ routes }, { ...INFO, version: 1 } as never),
      /title and/,
    ],
    ['without info', () => openApi({ routes }, undefined as never), /title and a version/],
    ['for inherited members of info', () => openApi({ routes }, Object.create(INFO)), /title and a version/],
    ...['licence', 'xowner', 'X-owner', 'my-x-owner'].map(
      (name) =>
        [
          `for ${name} in info, which is unknown`,
          () => openApi({ routes }, { ...INFO, [name]: {} } as never),
          new RegExp(`^info: ${name} is unknown; `),
        ] as const,
    ),
    [
      'without a server',
      () => openApi({ routes }, { ...INFO, servers: [] }),
      /^info: servers: must be a list of one or more objects with a url$/,
    ],
    [
      'for a server without a URL',
      () => openApi({ routes }, { ...INFO, servers: [{ url: '/' }, {}] }),
      /^info: servers: must be a list of one or more objects with a url$/,
    ],
    [
      'for a server whose URL is no text',
      () => openApi({ routes }, { ...INFO, servers: [{ url: 5 }] }),
      /^info: servers: must be a list of one or more objects with a url$/,
    ],
    [
      'for a hole among the servers',
      () => openApi({ routes }, { ...INFO, servers: [{ url: '/' }, , { url: '/' }] as never }),
      /^info: servers: must be a list of one or more objects with a url$/,
    ],
    [
      'for details that are null',
      () => documentOf(routes, { 'GET /a': null as never }),
      /^GET \/a: must be an object$/,
    ],
    [
      'for details that are a number',
      () => documentOf(routes, { 'GET /a': 5 as never }),
      /must be an object/,
    ],
    ...['idp', ''].map(
      (issuer) =>
        [
          `for the issuer ${JSON.stringify(issuer)}, which is no URL`,
          () => openApi({ routes }, { ...INFO, issuer }),
          /^info: issuer must be a URL$/,
        ] as const,
    ),
    [
      'for a table of a class, whose rules would be inherited',
      () =>
        openApi(
          new (class {
            routes = routes;
          })() as never,
          INFO,
        ),
      /members of a plain object/,
    ],
    ['without routes', () => openApi({} as never, INFO), /routes and rules: must be lists/],
    ['for a route in place of a list', () => openApi({ routes: routes[0] } as never, INFO), /must be lists/],
    ['for null in place of routes', () => openApi(null as never, INFO), /routes and rules: must be lists/],
    ['for routes that cannot be served', () => documentOf([{} as never]), /is not a route/],
    [
      'for each of two routes that cannot be served',
      () => documentOf([{} as never, 5 as never]),
      /is not a route[^]*is not a route/,
    ],
  ];
  for (const [what, make, message] of cases) {
    test(what, () => assert.throws(make, { name: 'TypeError', message }));
  }
});

test('an extension of info is kept, whatever JSON value it has (OpenAPI 3.1 §4.9)', () => {
  const extensions = { 'x-owner': 'us', 'x-until': null, 'x-paid': false, 'x-price': 0 };
  const { info } = openApi({ routes: [] }, { ...INFO, ...extensions } as OpenApiInfo);
  assert.deepEqual(info, { ...INFO, ...extensions });
});

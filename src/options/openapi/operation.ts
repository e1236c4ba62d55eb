// One route as an operation: its parameters, body, responses and security. Promises: a schema that cannot be
// written as JSON Schema (standardschema.dev, Standard JSON Schema) becomes "any JSON".
import { isJsonObject, type JsonObject } from '../../verify/base/encoding.ts';
import { readJson } from '../../service/routes/body.ts';
import { namesIn } from '../../service/routes/pattern.ts';
import type { Route } from '../../service/routes/route.ts';
import type { Schema } from '../../service/routes/schema.ts';
import { responsesOf, securityOf, type InForce } from './access.ts';
import { keyOf, present, type OperationDetails } from './details.ts';

interface Given extends OperationDetails {
  readonly operationId: string;
}

/** Components, by name. */
export type Schemas = Record<string, JsonObject>;

export function operationOf(
  route: Route,
  path: string,
  inForce: InForce,
  given: Given,
  schemas: Schemas,
): JsonObject {
  const { summary = keyOf(route), response, ...others } = given;
  const parameters = [...pathParameters(path), ...queryParameters(route, given.operationId, schemas)];
  const success = successOf(route, response, given.operationId, schemas);

  return present({
    summary,
    ...others,
    parameters: parameters.length > 0 ? parameters : undefined,
    requestBody: requestBodyOf(route, given.operationId, schemas),
    responses: { ...success, ...responsesOf(route, inForce) },
    security: securityOf(inForce),
  });
}

const TEXT = { type: 'string' };

const pathParameters = (path: string) =>
  namesIn(path).map(([name]) => ({
    name,
    in: 'path',
    required: true,
    schema: TEXT,
  }));

/** With `explode`, its members are the parameters. */
const WHOLE = { name: 'query', in: 'query', style: 'form', explode: true };

/** What a parameter for each member says, or the document. */
const SAID = ['type', 'properties', 'required', 'additionalProperties', 'title', 'description'];

/** One for each member of an object; of a schema that says more, one for all. */
function queryParameters({ query }: Route, operationId: string, schemas: Schemas): readonly JsonObject[] {
  if (query === undefined) return [];

  const schema = jsonSchemaOf(query.schema, 'input');
  if (saysMore(schema)) {
    const whole = schema === ANY ? { type: 'object' } : placed(schema, `${operationId}Query`, schemas);
    return [{ ...WHOLE, schema: whole }];
  }

  const { properties, required } = schema;
  const names: readonly string[] = Array.isArray(required) ? required : [];
  return Object.entries(Object(properties)).map(([name, each]) => ({
    name,
    in: 'query',
    required: names.includes(name),
    schema: each,
  }));
}

function saysMore(schema: JsonObject) {
  const { properties, required, additionalProperties } = schema;
  if (!isJsonObject(properties) || isJsonObject(additionalProperties) || hasReferences(schema)) return true;
  if (!Object.keys(schema).every((keyword) => SAID.includes(keyword))) return true;

  const names = Object.keys(properties);
  return Array.isArray(required) && !required.every((name) => names.includes(name));
}

function requestBodyOf({ body }: Route, operationId: string, schemas: Schemas): JsonObject | undefined {
  if (body === undefined) return undefined;

  const schema = body.read === readJson ? jsonSchemaOf(body.schema, 'input') : undefined;
  const media = schema && { schema: placed(schema, `${operationId}Body`, schemas) };
  const types = body.types.length > 0 ? body.types : ['*/*'];
  const content = Object.fromEntries(types.map((type) => [type, media ?? {}]));
  return { required: true, content };
}

/** A schema with references stands in the components, so that these have an address. */
function placed(schema: JsonObject, name: string, schemas: Schemas): JsonObject {
  if (!hasReferences(schema)) return schema;

  // OpenAPI 3.1 §4.8.7: a name may only have letters, digits, `.`, `-` and `_`; an operationId, anything.
  let key = name.replace(/[^\w.-]/g, '_');
  while (key in schemas) key += '_';
  const address = `#/components/schemas/${key}`;
  schemas[key] = Object(moved(schema, address));
  return { $ref: address };
}

/** A route of `GET` responds with 200 (RFC 9110 §9.3.1), others with what their handlers say. */
function successOf({ method }: Route, response: Schema | undefined, operationId: string, schemas: Schemas) {
  const isKnown = response !== undefined || method === 'GET';
  if (!isKnown) return { '2XX': { description: 'Success' } };

  const schema = jsonSchemaOf(response, 'output');
  const content = { 'application/json': { schema: placed(schema, `${operationId}Response`, schemas) } };
  return { 200: { description: 'Success', content } };
}

/** Any JSON value. */
const ANY: JsonObject = {};

/** In zod, a type that JSON does not have, such as `z.date()`, is then any JSON where it stands alone. */
const TARGET = { target: 'draft-2020-12', libraryOptions: { unrepresentable: 'any' } };

/** What goes into the schema, or what comes out. */
function jsonSchemaOf(schema: Schema | undefined, side: 'input' | 'output'): JsonObject {
  try {
    const written: unknown = Object(schema?.['~standard']).jsonSchema?.[side]?.(TARGET);
    if (!isJsonObject(written)) return ANY;

    // A plain copy. The document says its dialect for all schemas.
    const { $schema: _, ...others }: JsonObject = JSON.parse(JSON.stringify(written));
    return others;
  } catch {
    // Such as a transformation, or a type that JSON does not have.
    return ANY;
  }
}

/** These hold values, in which `$ref` is data. */
const VALUES = ['const', 'enum', 'default', 'examples', 'example'];

/** Names below these are no keywords (JSON Schema 2020-12, Core §8.2.4, §10.2.2.4, §10.3.2). */
const NAMED = ['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties'];

/** A JSON Pointer changes when the schema moves; the name of an `$anchor` does not. */
const POINTER = /^#(?=\/|$)/;

/** Whether it refers to itself or a part of itself. */
const hasReferences = (schema: unknown): boolean =>
  JSON.stringify(moved(schema, '')) !== JSON.stringify(schema);

/** The same at another place of the document: references begin with the address of the place. */
function moved(schema: unknown, address: string, areNames = false): unknown {
  if (Array.isArray(schema)) return schema.map((each) => moved(each, address));
  if (!isJsonObject(schema)) return schema;

  const members = Object.entries(schema).map(([name, value]) => {
    if (areNames) return [name, moved(value, address)];
    if (VALUES.includes(name)) return [name, value];
    const isReference = name === '$ref' && typeof value === 'string';
    return [
      name,
      isReference ? value.replace(POINTER, address) : moved(value, address, NAMED.includes(name)),
    ];
  });
  return Object.fromEntries(members);
}

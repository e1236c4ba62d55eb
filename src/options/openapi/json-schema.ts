// Schemas of routes as JSON Schema, where they implement Standard JSON Schema (standardschema.dev). Promises:
// a schema that cannot be written as JSON Schema becomes "any JSON".
import { isJsonObject, type JsonObject } from '../../verify/base/encoding.ts';
import type { Schema } from '../../service/routes/schema.ts';

/** Any JSON value. */
export const ANY: JsonObject = {};

const TARGET = { target: 'draft-2020-12' };

/** What goes into the schema, or what comes out. */
export function jsonSchemaOf(schema: Schema | undefined, side: 'input' | 'output'): JsonObject {
  const { jsonSchema }: JsonObject = Object(schema?.['~standard']);
  const write: unknown = Object(jsonSchema)[side];
  if (typeof write !== 'function') return ANY;

  try {
    const written: unknown = Reflect.apply(write, jsonSchema, [TARGET]);
    return isJsonObject(written) ? withoutDialect(written) : ANY;
  } catch {
    // Such as a transformation, or a type that JSON does not have.
    return ANY;
  }
}

/** A plain copy. The document says its dialect for all schemas. */
function withoutDialect(written: JsonObject): JsonObject {
  const { $schema: _, ...schema }: JsonObject = JSON.parse(JSON.stringify(written));
  return schema;
}

/** These hold values, in which `$ref` is data. */
const VALUES = ['const', 'enum', 'default', 'examples', 'example'];

/** Names below these are no keywords (JSON Schema 2020-12, Core §8.2.4, §10.2.2.4, §10.3.2). */
const NAMED = ['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties'];

/** A JSON Pointer changes when the schema moves; the name of an `$anchor` does not. */
const POINTER = /^#(?=\/|$)/;

/** Whether it refers to itself or a part of itself. */
export const hasReferences = (schema: unknown): boolean =>
  JSON.stringify(moved(schema, '')) !== JSON.stringify(schema);

/** The same at another place of the document: references begin with the address of the place. */
export function moved(schema: unknown, address: string, areNames = false): unknown {
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

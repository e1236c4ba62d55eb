// Standard Schema v1 (standardschema.dev): what a team's schema is asked, and what of its answer a client is
// told. The types are ours, so that no package is needed. Trusts a schema to judge; never shows what a schema
// was given.
import { andThen } from '../base/clock.ts';
import type { Issue } from '../base/refusal.ts';

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type Result<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] };

/** What zod, valibot, ArkType and others give: an object or a function with `~standard`. */
export interface Schema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly validate: (value: unknown) => Result<Output> | Promise<Result<Output>>;
  };
}

const MAX_ISSUES = 20;
const MAX_MESSAGE_LENGTH = 200;

/** Throws a `TypeError` for what is not a Standard Schema of version 1. */
export function checkSchema<Output>(schema: Schema<Output>): Schema<Output> {
  const standard = Object(schema)['~standard'];
  if (standard?.version === 1 && typeof standard.validate === 'function') return schema;

  throw new TypeError('a schema must have "~standard" of version 1 with a function "validate"');
}

/**
 * The schema's output for the value, or why it does not fit. What `validate` throws is a bug, and propagates.
 */
export const validate = <Output>(schema: Schema<Output>, value: unknown) =>
  andThen(schema['~standard'].validate(value), (result) =>
    result.issues ? { issues: result.issues.slice(0, MAX_ISSUES).map(shownIssue) } : { output: result.value },
  );

/** Its own issue object may hold the input. */
function shownIssue({ path = [], message }: SchemaIssue): Issue {
  const keys = path.map((part) => (typeof part === 'object' ? part.key : part));
  const shown = keys.map((key) => (typeof key === 'number' ? key : String(key)));
  return { path: shown, message: String(message).slice(0, MAX_MESSAGE_LENGTH) };
}

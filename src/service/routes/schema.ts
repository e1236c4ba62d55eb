// Standard Schema v1 (standardschema.dev): what a team's schema is asked, and what of its answer a client
// is told. The types are ours, so that no package is needed. Trusts a schema to judge; never shows what a
// schema was given.
import { andThen } from '../../verify/base/clock.ts';
import { UsageError } from '../../verify/base/events.ts';
import { refuse } from '../../verify/base/refusal.ts';

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
const MAX_TEXT_LENGTH = 200;

/** Why it is not a Standard Schema of version 1. */
export function schemaFault(schema: unknown): string | undefined {
  const standard = Object(schema)['~standard'];
  const isSchema = standard?.version === 1 && typeof standard.validate === 'function';
  return isSchema ? undefined : 'a schema must have "~standard" of version 1 with a function "validate"';
}

/**
 * Gives the schema's output for the value, or throws `Refused` with this flaw. What `validate` throws, or
 * gives beside a value or issues, is a bug.
 */
export function judge<Output>(
  schema: Schema<Output>,
  value: unknown,
  flaw: 'body-refused' | 'query-refused',
) {
  return andThen(schema['~standard'].validate(value), (result) => {
    if (result.issues) {
      throw refuse(flaw, { issues: result.issues.slice(0, MAX_ISSUES).map(shownIssue) });
    }
    if ('value' in result) return result.value;

    throw new UsageError('a schema gave neither a value nor issues');
  });
}

/** Of an issue only this: the schema's own object may hold the input. */
function shownIssue({ path = [], message }: SchemaIssue) {
  const keys = path.map((part) => {
    const key = typeof part === 'object' ? part.key : part;
    return typeof key === 'number' ? key : shown(key);
  });
  return { path: keys, message: shown(message) };
}

const shown = (text: PropertyKey) => String(text).slice(0, MAX_TEXT_LENGTH);

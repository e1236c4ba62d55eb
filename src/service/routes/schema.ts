// Standard Schema version 1 (standardschema.dev), typed here to need no package. Promises: a client sees the
// messages and keys of the issues, nothing else.
import { andThen } from '../../verify/base/clock.ts';
import { UsageError } from '../../verify/base/events.ts';
import { refuse } from '../../verify/base/refusal.ts';

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type Result<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] };

/** Standard Schema, version 1 (standardschema.dev), as made by zod, valibot and ArkType. */
export interface Schema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly validate: (value: unknown) => Result<Output> | Promise<Result<Output>>;
  };
}

const MAX_ISSUES = 20;

/** Whole characters: some parsers refuse halves (RFC 8259 §8.2). */
const SHOWN = /.{0,200}/su;

const NO_SCHEMA =
  'a schema must have "~standard" of version 1 with a function "validate"; options come second';

export function requireSchema(schema: unknown) {
  const standard = Object(schema)['~standard'];
  const isSchema = standard?.version === 1 && typeof standard.validate === 'function';
  if (!isSchema) throw new TypeError(NO_SCHEMA);
}

/** Throws or rejects with `Refused` for `reason`; any other error, or an invalid result, is a bug. */
export function checkBySchema<Output>(
  schema: Schema<Output>,
  value: unknown,
  reason: 'body-refused' | 'query-refused',
) {
  return andThen(schema['~standard'].validate(value), (result) => {
    if (result.issues) {
      throw refuse(reason, { issues: result.issues.slice(0, MAX_ISSUES).map(shownIssue) });
    }
    if ('value' in result) return result.value;

    throw new UsageError('a schema gave neither a value nor issues');
  });
}

/** An issue may also hold the input. */
function shownIssue({ path = [], message }: SchemaIssue) {
  const keys = path.map((part) => {
    const key = typeof part === 'object' ? part.key : part;
    return typeof key === 'number' ? key : shown(key);
  });
  return { path: keys, message: shown(message) };
}

const shown = (text: PropertyKey) => String(SHOWN.exec(String(text)));

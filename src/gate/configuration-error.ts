// The error of whatever is created: settings, routes or an access that cannot be used.

/**
 * Everything that stops the start: `problems` has one line each, in printable ASCII.
 *
 * @example if (error instanceof ConfigurationError) console.error(error.problems.join('\n'));
 */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    const lines = problems.map((problem) => problem.replace(/[^\x20-\x7e]/g, '?'));
    super(lines.join('\n'));
    this.problems = lines;
  }
}

// The error for settings, routes or rules that cannot be used.

/**
 * Everything to correct in settings: `problems` are lines in printable ASCII, and the message is all of them.
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

// Why something cannot be created: settings, routes or an access.

/**
 * Why a service does not start: every problem, one line each, in printable ASCII.
 *
 * @example if (failure instanceof ConfigurationError) console.error(failure.problems.join('\n'));
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

/* A reporter that prints nothing and ends the process at the first failing test. */

export default async function* (events: AsyncIterable<{ readonly type: string }>): AsyncGenerator<string> {
  for await (const { type } of events) {
    if (type === 'test:fail') process.exit(1);
  }
}

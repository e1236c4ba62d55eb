/* A reporter that says nothing and ends the process at the first test that fails. */

export default async function* (events: AsyncIterable<{ readonly type: string }>): AsyncGenerator<string> {
  for await (const { type } of events) {
    if (type === 'test:fail') process.exit(1);
  }
}

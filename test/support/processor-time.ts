/* What a piece of work takes of the processor: unlike the time that passes, hardly more on a busy machine. */

export function processorMillis(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

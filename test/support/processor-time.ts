/* The processor time of a piece of work, which, unlike elapsed time, hardly grows on a busy machine. */

export function processorMillis(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

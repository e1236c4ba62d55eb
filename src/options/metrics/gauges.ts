// What the process itself uses: processor, memory, and how late its timers run.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { catching } from '../../verify/base/encoding.ts';

const delays = monitorEventLoopDelay({ resolution: 20 });

/** Name and value of each gauge; NaN for what cannot be known at the moment. */
export function processGauges(): [name: string, value: number][] {
  const { user, system } = process.cpuUsage();
  // Node opens a file for it, and there may be no descriptor left.
  const memory = catching('Error', process.memoryUsage);
  const { rss = NaN, heapUsed = NaN, heapTotal = NaN } = memory ?? {};
  const lateSeconds = delays.percentile(99) / 1e9;
  delays.enable();
  delays.reset();
  return Object.entries({
    process_start_time_seconds: performance.timeOrigin / 1000,
    process_cpu_seconds_total: (user + system) / 1e6,
    process_resident_memory_bytes: rss,
    nodejs_heap_size_used_bytes: heapUsed,
    nodejs_heap_size_total_bytes: heapTotal,
    // Each timer runs for 20 ms.
    nodejs_eventloop_lag_p99_seconds: Math.max(0, lateSeconds - 0.02),
  });
}

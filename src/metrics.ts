// The entry point `gatehouse-http/metrics`: metrics for Prometheus.
export {
  createMetrics,
  type MetricsOptions,
  type MetricsWithText,
} from './options/metrics/metrics-listener.ts';
export type { MetricsPart } from './gate/options.ts';

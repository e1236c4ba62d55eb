// The entry point `gatehouse-http/redis`: a replay store that replicas share.
export { redisReplayStore } from './options/redis/replay.ts';
export type { ReplayStorePart } from './verify/options.ts';

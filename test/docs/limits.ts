/* The limits and durations that the documents state in prose, each from the code or file that has it. */
import { MAX_WAITING as MAX_WAITING_FOR_REDIS, REPLY_MILLIS } from '../../src/options/redis/connection.ts';
import { GREETING_MILLIS } from '../../src/options/redis/link.ts';
import { INTROSPECTION_DEFAULTS } from '../../src/options/introspection/introspection.ts';
import { KEEP_ALIVE_MILLIS } from '../../src/service/connection/connection.ts';
import { SERVICE_DEFAULTS } from '../../src/service/options.ts';
import { MAX_FIELDS } from '../../src/service/request/exchange.ts';
import {
  MAX_AGE_MILLIS,
  MAX_BACKOFF_MILLIS,
  MIN_BACKOFF_MILLIS,
  REFRESH_AFTER_MILLIS,
  REQUEST_PAUSE_MILLIS,
} from '../../src/verify/keys/key-set.ts';
import { CHECK_DEFAULTS, MAX_ISSUERS } from '../../src/verify/options.ts';
import { PROGRAMS, readResults } from '../evidence/orders/results.ts';
import { MOST_TOKENS_OF_A_FUNCTION } from '../support/page.ts';
import {
  constantIn,
  count,
  gib,
  kib,
  mib,
  minutes,
  numberIn,
  one,
  same,
  says,
  seconds,
  unit,
  word,
} from './constants.ts';
import { read, sampleUnder } from './pages.ts';

const NODE: string = JSON.parse(read('package.json')).engines.node.replace('>=', '');

const { port: PORT, requestTimeoutSeconds, handlerTimeoutSeconds } = SERVICE_DEFAULTS;
const REQUEST_SECONDS = Number(requestTimeoutSeconds);

const IAT_OFFSET = Number(CHECK_DEFAULTS.dpopIatOffsetSeconds);
const IAT_LEEWAY = Number(CHECK_DEFAULTS.dpopIatLeewaySeconds);
const WINDOW = IAT_OFFSET + IAT_LEEWAY;

const REPLAY = 'src/verify/dpop/replay.ts';
const CAPACITY = constantIn(REPLAY, 'capacity');
const STORE_PAUSE = constantIn('src/options/redis/link.ts', 'MAX_PAUSE_MILLIS');
/** A proof stays until its whole bucket has expired. */
const BUCKET = Math.ceil(WINDOW / numberIn(REPLAY, /windowSeconds \/ (\d+)/));
const VERDICT_MILLIS = constantIn(REPLAY, 'VERDICT_MILLIS');
const WAITING_FOR_STORE = same(MAX_WAITING_FOR_REDIS, constantIn(REPLAY, 'MAX_WAITING'));

const NONCE = 'src/verify/dpop/proof.ts';
/** The slots whose nonces pass: this one, and those before it. */
const NONCE_SLOTS = 1 + numberIn(NONCE, /nonceOf\(secret, slot - (\d+)\)/);
const NONCE_MINUTES = word(NONCE_SLOTS * minutes(constantIn(NONCE, 'SLOT_MILLIS')));

const FETCH_MILLIS = constantIn('src/verify/keys/fetch.ts', 'timeoutMillis');
/** A fetch asks for the discovery document and for the keys. */
const ASKED = word(2);
const MAX_KEYS = constantIn('src/verify/keys/jwks.ts', 'MAX_KEYS');
const KEY_SET = 'src/verify/keys/key-set.ts';
const JWK = 'src/verify/keys/jwk.ts';
const LEAST_BITS = numberIn(JWK, /modulusLength < (\d+)/);
/** The least odd number above the bound. */
const LEAST_EXPONENT = numberIn(JWK, /publicExponent > (\d+)/) + 2;
const BITS_OF_EXPONENT = Math.log2(constantIn(JWK, 'MAX_EXPONENT') + 1);

const LISTENER = 'src/service/connection/listener.ts';
const HEADER_MILLIS = constantIn(LISTENER, 'HEADER_MILLIS');
const SWEEP_MILLIS = constantIn(LISTENER, 'SWEEP_MILLIS');
const CONNECTION = 'src/service/connection/connection.ts';
const UNREAD_MILLIS = constantIn(CONNECTION, 'UNREAD_MILLIS');
const ON_STOP_MILLIS = constantIn('src/process/life.ts', 'STOP_MILLIS');

const QUESTIONS = 'src/options/introspection/questions.ts';
const QUESTION_MILLIS = constantIn(QUESTIONS, 'MAX_MILLIS');
const MAX_ANSWER_BYTES = constantIn('src/options/introspection/endpoint.ts', 'MAX_BYTES');
const INTROSPECT = 'src/options/introspection/introspect.ts';
const PARTS_OF_JWT = numberIn(INTROSPECT, /length !== (\d) && length/);
const SLOTS = 'src/options/tenants/slots.ts';
const TEMPLATE = 'src/options/tenants/template.ts';
const OPTIONS = 'src/verify/options.ts';
const PROOF = 'src/verify/dpop/proof.ts';
const SCHEMA = 'src/service/routes/schema.ts';
const HANDLER_REPLY = 'src/service/routes/handler-reply.ts';
const REVOCATION = 'src/options/redis/revocation.ts';
const DECISIONS = 'src/options/decisions.ts';
const NGINX_SECONDS = numberIn('docs/forward-auth.conf', /gatehouse\/forward-auth;[^}]*read_timeout (\d+)s/);
const ENVOY_SECONDS = numberIn('docs/proxies.md', /server_uri: .*timeout: (\d+)s/);
const REDIS_TARGET = 'src/options/redis/target.ts';
const RUN = 'src/process/run.ts';
const LOG = 'src/options/log.ts';
const PROFILES = 'src/profiles/settings.ts';

const MOST_NODES = word(1 + numberIn(REDIS_TARGET, /\{HOST\}\)\{0,(\d+)\}/));

/** For each lookup: only half of libuv's threads resolve names. */
const THREADS = numberIn(RUN, /String\((\d+) \* \(all/);
/** With the one host that stands before the first comma, or for no store. */
const STORES = 1 + numberIn(RUN, /revocationStore \? \d+ : (\d+)/);
const STORES_WITH_REVOCATION = 1 + numberIn(RUN, /revocationStore \? (\d+)/);
const FETCHES_OF_TENANTS = same(numberIn(RUN, /isTemplate\(jwksUri\)\) \? (\d+)/), constantIn(SLOTS, 'MOST'));

const MANIFESTS = 'docs/kubernetes.yaml';

/** The cache drops one of its generations. */
const HALF = numberIn('src/verify/base/cache.ts', /ceil\(capacity \/ (\d)\)/) === 2 ? 'half' : 'part';

const IDENTITY_HEADERS = word(new Set(read('src/options/forward-auth.ts').match(/X-Auth-\w+/gi)).size);

const NODE_OF_PICTURE = numberIn('test/evidence/bench/results.json', /"node": "v(\d+)/);

/** What the manifests add to the delay is what the page tells everyone to add. */
const KILL_SECONDS =
  numberIn(MANIFESTS, /terminationGracePeriodSeconds: (\d+)/) -
  numberIn(MANIFESTS, /SHUTDOWN_DELAY_SECONDS: "(\d+)"/);

const RULES = 'docs/rules.yml';
const KEYS_GROW_OLD_SECONDS = numberIn(RULES, /gatehouse_keys_age_seconds .*> (\d+)/);
const STORE_FILLS_UP = numberIn(RULES, /gatehouse_replay_entries .*> (\d+)/);
const REFUSALS_A_SECOND = word(numberIn(RULES, /GatehouseRefusals\n[^]*?\) > (\d+)/));

const EVENTS = 'src/verify/base/events.ts';
const SHOWN_CHARACTERS = numberIn(EVENTS, /const printable = .*, (\d+)\)/);
const QUIET_MILLIS = constantIn('src/gate/tell.ts', 'QUIET_MILLIS');
const MAX_DEPTH = constantIn('src/service/routes/body.ts', 'MAX_DEPTH');

const ARCHITECTURE = 'test/architecture.test.ts';
const MCP = 'test/package/mounts/mcp.mjs';
const MCP_GATE = 'test/package/mounts/mcp-gate.mjs';

const PLAN = 'test/evidence/bench/plan.ts';
const GOAL_ROUNDS = numberIn(PLAN, /BENCH_ROUNDS.* (\d+) :/);
const ROUNDS = word(numberIn(PLAN, /BENCH_ROUNDS.* : (\d+)/));

const linesOf = (text: string) => text.trim().split('\n');

const EXPRESS = sampleUnder('README.md', 'Express in \\w+ lines', 'js');
const LINES_OF_EXPRESS = linesOf(EXPRESS).filter((line) => line !== '').length;
const LINES_OF_BOUND = linesOf(read('test/evidence/bench/servers/verifier.mjs')).length;

const programs = word(PROGRAMS.length);
const sent = Object.values(readResults()).map(({ outcomes }) => Object.keys(outcomes).length);

/** What each page says, with its line breaks joined. */
export const LIMITS: Readonly<Record<string, readonly string[]>> = {
  'README.md': [says`Express in ${word(LINES_OF_EXPRESS)} lines`, says`On Node ${NODE} or newer`],
  'SECURITY.md': [
    says`a maintained release of Node, ${NODE} or newer`,
    says`(\`kid\`, cut to ${SHOWN_CHARACTERS} characters)`,
    says`No key is used more than ${one(MAX_AGE_MILLIS)} after it was fetched`,
    says`to limit replays to ${NONCE_MINUTES} minutes`,
  ],
  'CONTRIBUTING.md': [
    says`The limits are ${count(constantIn(ARCHITECTURE, 'MOST_TOKENS_OF_A_FILE'))} tokens for a file`,
    says`${MOST_TOKENS_OF_A_FUNCTION} for a function`,
    says`inner functions of ${word(1 + constantIn('test/support/page.ts', 'INLINE_LINES'))} or more lines`,
    says`and ${constantIn(ARCHITECTURE, 'USUAL_TOKENS_ON_A_LINE')} for a line`,
    says`(in a few cases, ${constantIn(ARCHITECTURE, 'MOST_TOKENS_ON_A_LINE')})`,
  ],
  'docs/certificates.md': [
    says`malformed or over ${kib(constantIn('src/options/certificates/certificates.ts', 'MAX_LENGTH'))}`,
  ],
  'docs/compared.md': [
    says`The same API ${programs} times`,
    says`All ${programs} programs get the same ${same(...(sent as [number]))} requests`,
    says`"No exit within ${seconds(constantIn('test/evidence/orders/requests.ts', 'PATIENCE_MILLIS'))}"`,
  ],
  'docs/decisions.md': [
    says`(default ${constantIn(DECISIONS, 'timeoutSeconds')}, at most ${constantIn(DECISIONS, 'MAX_SECONDS')})`,
    says`At most ${count(constantIn(DECISIONS, 'MAX_WAITING'))} requests can wait for the same decision`,
    says`nginx: \`proxy_read_timeout\`, ${NGINX_SECONDS} s`,
    says`Envoy: \`timeout\` in \`server_uri\`, ${ENVOY_SECONDS} s`,
  ],
  'docs/deploy.md': [
    says`for upstream connections below ${seconds(KEEP_ALIVE_MILLIS)}`,
    says`Node ${numberIn('Dockerfile', /ARG BASE=.*nodejs(\d+)-/)} on distroless`,
    says`Debian ${numberIn('Dockerfile', /ARG BASE=.*-debian(\d+)/)}`,
    says`as user ${numberIn('Dockerfile', /^USER (\d+):/m)}`,
    says`less than ${one(MAX_AGE_MILLIS)} old`,
    says`probes \`/readyz\` every ${numberIn('Dockerfile', /^HEALTHCHECK --interval=(\d+)s/m)} s`,
    says`\`--check\` waits at most ${seconds(same(FETCH_MILLIS, QUESTION_MILLIS))}`,
    says`at \`HOST\` and \`PORT\`, and waits at most ${seconds(constantIn('src/process/probe.ts', 'PROBE_MILLIS'))}`,
    says`\`onStop\` took over ${seconds(ON_STOP_MILLIS)}`,
    says`waits up to ${seconds(constantIn('src/service/connection/listen.ts', 'LOUD_MILLIS'))} for new connections`,
    says`idle connections close after another ${unit(SWEEP_MILLIS)}`,
    says`has lasted ${seconds(constantIn(LISTENER, 'STOP_MILLIS'))}`,
    says`\`onStop\`, if set, runs for at most ${seconds(ON_STOP_MILLIS)}`,
    says`at least ${KILL_SECONDS} s (${seconds(KILL_SECONDS * 1_000 + ON_STOP_MILLIS)} with \`onStop\`)`,
    says`more than ${word(numberIn('test/example/haproxy.cfg', /fall (\d+)/))} check intervals`,
  ],
  'docs/dpop.md': [
    says`must have ${LEAST_BITS} to ${constantIn(JWK, 'MAX_PROOF_BITS')} bits`,
    says`an exponent of at most ${BITS_OF_EXPONENT} bits`,
    says`${numberIn(PROOF, /jti\.length < (\d+)/)} to ${numberIn(PROOF, /jti\.length > (\d+)/)} characters`,
    says`at most \`IDP_DPOP_IAT_OFFSET_SECONDS\` (default ${IAT_OFFSET}) in the past`,
    says`\`IDP_DPOP_IAT_LEEWAY_SECONDS\` (default ${IAT_LEEWAY}) in the future`,
    says`To limit reuse to ${NONCE_MINUTES} minutes`,
    says`each replica records [up to ${count(CAPACITY)} proofs]`,
    // Rounded down to hundreds.
    says`enough for ${count(Math.floor(CAPACITY / (WINDOW + BUCKET) / 100) * 100)} proofs a second`,
    says`cannot be recorded within ${one(same(REPLY_MILLIS, VERDICT_MILLIS))}`,
    says`At most ${count(WAITING_FOR_STORE)} requests wait for the store`,
    says`gets no reply within ${seconds(REPLY_MILLIS)}`,
    says`Within ${seconds(STORE_PAUSE + GREETING_MILLIS)} of the store's recovery`,
    says`sentinels, asked every ${seconds(STORE_PAUSE)}`,
    // Sentinels tell each other every two seconds, too.
    says`\`SENTINEL FAILOVER\`, up to ${seconds(STORE_PAUSE + 2_000)}`,
    says`the listed nodes (one to ${MOST_NODES})`,
    says`one to ${MOST_NODES} sentinels (default port ${constantIn(REDIS_TARGET, 'SENTINEL_PORT')})`,
    says`(by default, at most ${WINDOW} s)`,
    says`\`true\` (new) or \`false\` within ${one(VERDICT_MILLIS)}`,
  ],
  'docs/for-mcp-and-agents.md': [
    says`up to ${same(constantIn(MCP, 'sessionsOfACaller'), constantIn(MCP_GATE, 'sessionsOfACaller'))} sessions`,
    says`a process up to ${count(same(constantIn(MCP, 'sessions'), constantIn(MCP_GATE, 'sessions')))}`,
    says`cache the document for ${one(numberIn('src/options/resource-metadata.ts', /max-age=(\d+)/) * 1_000)}`,
  ],
  'docs/forward-auth.md': [
    says`identity in ${IDENTITY_HEADERS} headers`,
    says`gatehouse's ${IDENTITY_HEADERS} headers`,
    says`has the ${IDENTITY_HEADERS} headers below`,
    says`would exceed ${kib(numberIn('src/options/forward-auth.ts', /UP_TO_8_KIB = .*\{1,(\d+)\}/))}`,
    says`**Allow ${numberIn('docs/forward-auth.conf', /proxy_buffer_size (\d+)k/)} KiB** for the headers`,
  ],
  'docs/how-a-request-is-checked.md': [
    says`more than ${constantIn('src/verify/request/facts.ts', 'MAX_SEGMENTS')} segments`,
    says`a salt of ${constantIn(JWK, 'saltLength')} bytes`,
    says`for ${word(minutes(numberIn('src/options/cors.ts', /'Access-Control-Max-Age',\s+'(\d+)'/) * 1_000))} minutes`,
  ],
  'docs/in-front-of-your-server.md': [
    says`\`maxHeadersCount\` (${count(constantIn('src/gate/foreign/request.ts', 'NODE_MAX_FIELDS'))} by default)`,
  ],
  'docs/introspection.md': [
    says`(at least ${constantIn('src/options/introspection/client.ts', 'LEAST_BITS')} bits)`,
    says`exactly ${word(PARTS_OF_JWT - 1)} or ${word(numberIn(INTROSPECT, /&& length !== (\d)/) - 1)} dots`,
    says`A token with ${word(PARTS_OF_JWT - 1)} dots`,
    says`up to ${count(constantIn(INTROSPECT, 'MAX_LENGTH'))} characters`,
    says`(default ${INTROSPECTION_DEFAULTS.cacheSeconds}), but never beyond`,
    says`at most ${constantIn(INTROSPECT, 'MAX_REFUSED_SECONDS')} s | ${count(constantIn(INTROSPECT, 'MAX_REFUSED'))} |`,
    says`Within ${seconds(QUESTION_MILLIS)} and ${kib(MAX_ANSWER_BYTES)}`,
    says`at most ${constantIn(QUESTIONS, 'MAX_UNDER_WAY')} introspection requests are in flight`,
    says`at most ${count(constantIn(QUESTIONS, 'MAX_WAITING'))} client requests wait`,
    says`After ${constantIn(QUESTIONS, 'MAX_FAILURES')} consecutive failures`,
    says`only one introspection request ${one(constantIn(QUESTIONS, 'PAUSE_MILLIS'))}`,
    says`an introspection response within ${seconds(QUESTION_MILLIS)}`,
  ],
  'docs/keys.md': [
    says`of at most ${count(constantIn('src/verify/keys/fetch.ts', 'MAX_ADDRESS_LENGTH'))} characters`,
    says`takes at most ${seconds(FETCH_MILLIS)}`,
    says`at most ${MAX_KEYS} keys`,
    says`at most ${kib(constantIn('src/verify/keys/byte-limit.ts', 'MAX_BYTES'))} from the provider`,
    says`keys older than ${minutes(REFRESH_AFTER_MILLIS)} minutes`,
    says`takes effect within about ${minutes(REFRESH_AFTER_MILLIS)} minutes`,
    says`at most once every ${seconds(REQUEST_PAUSE_MILLIS)}`,
    says`retries after about ${seconds(MIN_BACKOFF_MILLIS)}`,
    says`with each failure, up to ${seconds(MAX_BACKOFF_MILLIS)}`,
    says`failed less than ${seconds(REQUEST_PAUSE_MILLIS)} ago`,
    says`until they are ${one(MAX_AGE_MILLIS)} old`,
    says`under ${LEAST_BITS} bits, or over ${constantIn(JWK, 'MAX_SIGNING_BITS')} bits`,
    says`even, under ${LEAST_EXPONENT}, or over ${BITS_OF_EXPONENT} bits`,
    says`more than ${MAX_KEYS} keys`,
    says`can wait for ${word(constantIn(KEY_SET, 'MAX_FETCHES_AWAITED') - 1)} more`,
  ],
  'docs/logs-and-metrics.md': [
    says`are cut to ${SHOWN_CHARACTERS} characters`,
    says`up to ${constantIn(EVENTS, 'MAX_FRAMES')} stack frames`,
    says`each of up to ${count(constantIn(LOG, 'MAX_MESSAGE_LENGTH'))} characters`,
    says`drops lines beyond ${mib(constantIn(LOG, 'MAX_UNWRITTEN_BYTES'))}`,
    says`takes up to ${seconds(constantIn('src/process/life.ts', 'LAST_LINES_MILLIS'))} longer`,
    says`more than ${REFUSALS_A_SECOND} refusal a second`,
    says`keys are over ${minutes(KEYS_GROW_OLD_SECONDS * 1_000)} minutes old`,
    says`contains over ${count(STORE_FILLS_UP)} proofs`,
    says`for ${numberIn(RULES, /GatehouseUnavailable\n[^]*?for: (\d+)m/)} minutes, requests have been getting`,
    says`more than ${numberIn(RULES, /lag_p99_seconds .*> ([\d.]+)/)} s late`,
    says`ran gatehouse in the last ${unit(numberIn(RULES, /gatehouse_info\[(\d+)d\]/) * 86_400_000)}`,
    says`every ${minutes(REFRESH_AFTER_MILLIS)} minutes, and up to ${ASKED} every ${seconds(REQUEST_PAUSE_MILLIS)}`,
    says`| ${seconds(HEADER_MILLIS)}, ${kib(constantIn(LISTENER, 'maxHeaderSize'))}, ${MAX_FIELDS} fields |`,
    says`after ${seconds(HEADER_MILLIS)}, otherwise`,
    says`\`REQUEST_TIMEOUT_SECONDS\` (${REQUEST_SECONDS})`,
    says`${seconds(KEEP_ALIVE_MILLIS)} after its last response`,
    says`\`HANDLER_TIMEOUT_SECONDS\` (${Number(handlerTimeoutSeconds)})`,
    says`half-closed the connection | ${seconds(UNREAD_MILLIS)} |`,
    says`that has no response yet | ${kib(constantIn(CONNECTION, 'AHEAD_BYTES'))}, plus what`,
    says`waiting for one issuer's signing keys | ${count(constantIn(KEY_SET, 'MAX_WAITING'))} |`,
    says`an in-process replay store | ${count(CAPACITY)} proofs |`,
    says`the oldest ${HALF} is evicted`,
    says`\`IDP_TOKEN_CACHE_ENTRIES\` (${count(Number(CHECK_DEFAULTS.tokenCacheEntries))})`,
    says`the keys are ${one(MAX_AGE_MILLIS)} old: requests with the issuer's tokens`,
    says`failed or took over ${seconds(ON_STOP_MILLIS)}: the process exits`,
    says`failed (at most once ${one(QUIET_MILLIS)})`,
    says`up to ${one(constantIn('src/gate/observe.ts', 'SUMMARY_MILLIS'))} after a refusal`,
    says`Parsing a ${mib(constantIn('src/service/routes/inputs.ts', 'MAX_LIMIT_BYTES'))} body, the maximum`,
  ],
  'docs/profiles.md': [
    says`| port | ${numberIn(PROFILES, /'A' \? (\d+)/)} | ${numberIn(PROFILES, /'A' \? \d+ : (\d+)/)} |`,
  ],
  'docs/refusals.md': [
    says`lists up to ${constantIn(SCHEMA, 'MAX_ISSUES')} \`issues\``,
    says`at most ${numberIn(SCHEMA, /\.\{0,(\d+)\}/)} characters`,
    says`nest the JSON at most ${MAX_DEPTH} levels deep`,
    says`within ${seconds(HEADER_MILLIS)}, and the whole request within ${REQUEST_SECONDS} s (by default)`,
    says`(${numberIn(KEY_SET, /Math\.max\((\d+), seconds\)/)} to ${seconds(MAX_BACKOFF_MILLIS)})`,
  ],
  'docs/revocation.md': [
    says`more than ${constantIn('src/options/redis/revocation.ts', 'SPARE_SECONDS')} s (plus the clock tolerance)`,
    says`(${numberIn(REVOCATION, /keepSeconds: integer\((\d+),/)} to ${count(numberIn(REVOCATION, /keepSeconds: integer\(\d+, ([\d_]+)\)/))})`,
    says`Default: ${count(constantIn(REVOCATION, 'keepSeconds'))}`,
    says`does not confirm a change within ${seconds(GREETING_MILLIS + REPLY_MILLIS)}`,
    says`If the store does not reply within ${one(REPLY_MILLIS)}`,
  ],
  'docs/routes-reference.md': [
    says`at most ${numberIn('docs/routes-reference.md', /recentLogin\(\{.* maxAgeSeconds: (\d+)/)} seconds in the past`,
    says`(${numberIn(HANDLER_REPLY, /status < (\d+)\) throw .*fail needs/)} to ${numberIn(HANDLER_REPLY, /status < (\d+);/) - 1})`,
    says`\`REQUEST_TIMEOUT_SECONDS\` (default ${REQUEST_SECONDS})`,
    says`more than ${MAX_DEPTH} levels of nesting`,
    says`reads nothing for ${seconds(UNREAD_MILLIS)}`,
    says`at most ${gib(numberIn('src/service/fetch/mount.ts', /limitBytes: integer\(1, (.+)\) \}/))}`,
  ],
  'docs/rules.yml': [
    says`refuses over ${REFUSALS_A_SECOND} request a second`,
    says`has over ${count(STORE_FILLS_UP)} proofs`,
    says`At ${count(CAPACITY)} proofs, DPoP requests`,
    says`Once the keys are ${one(MAX_AGE_MILLIS)} old, requests with tokens`,
  ],
  'docs/settings.md': [
    says`of at most ${count(numberIn('src/settings/sources.ts', /status\.size > ([\d_]+)/))} bytes`,
    says`\`port\` defaults to ${Number(PORT)}`,
  ],
  'docs/several-issuers.md': [
    says`up to ${1 + MAX_ISSUERS} issuers`,
    says`consists of ${1 + numberIn(OPTIONS, /ISSUER_NAME = .*\{(\d+),/)} to ${1 + numberIn(OPTIONS, /ISSUER_NAME = .*,(\d+)\}/)} lowercase letters`,
    says`needs ${THREADS * STORES}, plus ${THREADS} for each issuer (${2 * THREADS} with introspection)`,
    says`${THREADS * (STORES_WITH_REVOCATION - STORES)} for a revocation store`,
    says`${THREADS} for each further host of a store`,
    says`and ${THREADS * FETCHES_OF_TENANTS} if tenants have their own key sets`,
  ],
  'docs/speed.md': [
    says`the ratio of a ${Math.round(LINES_OF_BOUND / 10) * 10}-line server`,
    says`medians of ${GOAL_ROUNDS} rounds (bound and best peer: ${ROUNDS}, on`,
    says`The picture shows ${ROUNDS} rounds on Node ${NODE_OF_PICTURE}`,
  ],
  'docs/tenants.md': [
    says`up to ${count(constantIn('src/options/tenants/tenants.ts', 'MOST_TENANTS'))} tenants`,
    says`consist of ${1 + numberIn(TEMPLATE, /TENANT = .*\{(\d+),/)} to ${1 + numberIn(TEMPLATE, /TENANT = .*,(\d+)\}/)} characters`,
    says`first request after ${seconds(REQUEST_PAUSE_MILLIS)}`,
    says`At most ${FETCHES_OF_TENANTS} fetches run at a time`,
    says`at most ${constantIn(SLOTS, 'MOST_AGAIN')} retries after a failure`,
    says`at most ${constantIn(SLOTS, 'MOST_A_SECOND')} fetches a second`,
  ],
  'docs/workloads.md': [
    says`each file (at most ${mib(constantIn('src/options/key-access.ts', 'MAX_BYTES'))})`,
  ],
  'docs/your-own-api.md': [
    says`on port ${Number(PORT)}`,
    says`a time limit of ${seconds(ON_STOP_MILLIS)}`,
    says`at most once ${one(QUIET_MILLIS)}`,
    says`can take ${one(SWEEP_MILLIS)} to close idle connections`,
  ],
};

/** Figures that no file of this repository decides, and why. */
export const OTHERS: readonly (readonly [page: string, phrase: string, reason: string])[] = [
  ['SECURITY.md', 'within three working days', 'what maintainers do'],
  ['SECURITY.md', 'normally within 90 days', 'what maintainers do'],
  ['docs/decisions.md', 'Traefik: always 30 s', "Traefik's own time limit"],
  ['docs/deploy.md', 'redirect port 80', 'the port of HTTP'],
  ['docs/deploy.md', 'Keep their clocks within two seconds', 'what operators do'],
  ['docs/dpop.md', 'the same two headers', 'those of the sentence before'],
  ['docs/dpop.md', 'limits the loss to the last second', "Redis's own schedule"],
  ['docs/evidence.md', 'over 1 GB', 'the size of other packages'],
  ['docs/fapi.md', 'RSA keys of at least 2048 bits', 'a requirement of FAPI 2.0'],
  ['docs/fapi.md', 'elliptic curve keys of at least 224 bits', 'a requirement of FAPI 2.0'],
  ['docs/fapi.md', 'at least 128 bits of entropy', 'a requirement of FAPI 2.0'],
  ['docs/for-mcp-and-agents.md', 'the last two statements of', 'a place in a file'],
  ['docs/forward-auth.md', 'too small for 3 KB of claims', "nginx's own buffers"],
  ['docs/forward-auth.md', 'For tokens over 8 KiB', "nginx's own buffers"],
  ['docs/logs-and-metrics.md', '64 KiB (16 KiB on Node 20)', "Node's own buffers"],
  ['docs/proxies.md', '1 MB by default', "nginx's own limit"],
  ['docs/revocation.md', 'differ by at most a second', 'what operators do'],
  [
    'docs/revocation.md',
    'up to two seconds after',
    'a second of the clocks, and one because times are rounded up',
  ],
  ['docs/several-issuers.md', 'on Node 20 if', "Node's own behavior"],
  ['docs/streams.md', 'silent for 10 s', "Bun's own time limit"],
];

// The token that the key fetches of an issuer show, and the authorities that its servers are checked against
// in place of all others. Promises: both files are read for each fetch, because Kubernetes replaces them, and
// neither the token nor a path appears in a message. Does not decide where the token may go:
// verify/keys/fetch.ts does.
import { X509Certificate } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, promises, readFileSync, type Stats } from 'node:fs';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { codeOf } from '../verify/base/encoding.ts';
import type { FetchErrorReason } from '../verify/base/events.ts';
import { readOptions, text, throwProblem, Part, type Rule, type RulesOf } from '../verify/base/option.ts';
import type { KeyAccess, KeyAccessPart } from '../verify/keys/fetch.ts';
import { FetchError } from '../verify/keys/jwks.ts';

/** The options of `keyAccess`, which needs at least one. */
export interface KeyAccessOptions {
  /** A file with the Bearer token for fetching the keys and the discovery document. */
  readonly tokenFile?: string | undefined;
  /** A PEM file with the only CAs to trust for the issuer's servers. */
  readonly caFile?: string | undefined;
}

const MAX_BYTES = 1024 * 1024;

/** To open a pipe must not wait for its other end. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

/** What is made of the text of a file; `undefined` for another form. */
export type Understand<Content> = (text: string) => Content | undefined;

/** RFC 6750 §2.1 */
const TOKEN = /^[\w.~+/-]+=*$/;

const MAX_TOKEN_LENGTH = 16_384;

const tokenIn: Understand<string> = (content) => {
  const token = content.replace(/\n$/, '');
  return TOKEN.test(token) && token.length <= MAX_TOKEN_LENGTH ? token : undefined;
};

/** RFC 7468 §5.1. A block without an end is no certificate. */
const BLOCK = /-----BEGIN CERTIFICATE-----[^-]*(?:-----END CERTIFICATE-----)?/g;

const authoritiesIn: Understand<readonly string[]> = (content) => {
  const blocks = content.match(BLOCK);
  return blocks?.every(isCertificate) ? blocks : undefined;
};

function isCertificate(block: string) {
  try {
    return Boolean(new X509Certificate(block));
  } catch {
    // OpenSSL has an error for each form that it cannot read.
    return false;
  }
}

const isReadable = (stats: Stats) => stats.isFile() && stats.size <= MAX_BYTES;

/** A file may have grown. A character is at least a byte. */
const understood = <Content>(bytes: Buffer, understand: Understand<Content>) =>
  bytes.length <= MAX_BYTES ? understand(bytes.toString('latin1')) : undefined;

export const NOT_READABLE = 'set it to a regular file of at most 1 MiB that gatehouse may read';

/** The rule for the path of a file that can be read now. */
export const fileOf = (understand: Understand<unknown>, problem: string): Rule =>
  function checkFile(value) {
    const fault = text(value);
    if (fault !== undefined) return fault;

    try {
      return readNow(String(value), understand) === undefined ? problem : undefined;
    } catch (error) {
      return `cannot be read (${codeOf(error)}); ${NOT_READABLE}`;
    }
  };

export function readNow<Content>(path: string, understand: Understand<Content>) {
  const file = openSync(path, FLAGS);
  try {
    return isReadable(fstatSync(file)) ? understood(readFileSync(file), understand) : undefined;
  } finally {
    closeSync(file);
  }
}

export const KEY_ACCESS_RULES: RulesOf<KeyAccessOptions> = {
  tokenFile: fileOf(
    tokenIn,
    `must be a file with a token of 1 to 16,384 letters, digits and ._~+/- (= at its end), and at most one ` +
      `line feed after it; ${NOT_READABLE}`,
  ),
  caFile: fileOf(
    authoritiesIn,
    `must be a file with one or more certificates in PEM (BEGIN CERTIFICATE); ${NOT_READABLE}`,
  ),
};

/** Rejects with `FetchError`. */
async function readLater<Content>(
  path: string | undefined,
  understand: Understand<Content>,
  reason: FetchErrorReason,
) {
  if (path === undefined) return undefined;

  const content = await readFor(path, understand).catch((error: unknown) => {
    throw new FetchError(reason, codeOf(error));
  });
  if (content === undefined) throw new FetchError(reason);
  return content;
}

async function readFor<Content>(path: string, understand: Understand<Content>) {
  const file = await promises.open(path, FLAGS);
  try {
    const isGood = isReadable(await file.stat());
    return isGood ? understood(await file.readFile(), understand) : undefined;
  } finally {
    await file.close();
  }
}

const OWNER = 'keyAccess';

/**
 * Sends a token when fetching an issuer's keys, or trusts only certain CAs for the issuer's servers: for the
 * option `keyAccess`. Reads the files now and for each fetch. Throws a `TypeError` for an invalid file.
 *
 * @example createGate({ domain, audience, keyAccess: keyAccess({ caFile: '/etc/ssl/cluster.pem' }) });
 */
export function keyAccess(options: KeyAccessOptions): KeyAccessPart {
  const { tokenFile, caFile } = readOptions<KeyAccessOptions>(options, KEY_ACCESS_RULES, {}, {}, OWNER);
  if (tokenFile === undefined && caFile === undefined) {
    throwProblem(OWNER, 'has neither tokenFile nor caFile; set one of them');
  }

  // The working directory may change.
  const tokenPath = tokenFile && resolve(tokenFile);
  const caPath = caFile && resolve(caFile);

  const readAuthorities = sharing(async () => {
    const ca = await readLater(caPath, authoritiesIn, 'ca-file-refused');
    return { secureContext: ca && createSecureContext({ ca: [...ca] }) };
  });

  const read = sharing(async () => {
    const token = await readLater(tokenPath, tokenIn, 'token-file-refused');
    return { token, ...(await readAuthorities()) };
  });

  const content: KeyAccess = { read, readAuthorities };
  return Part.make(OWNER, content);
}

/** A file system that hangs keeps one thread, not one for each fetch. */
function sharing<Result>(read: () => Promise<Result>) {
  let reading: Promise<Result> | undefined;
  return () => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  };
}

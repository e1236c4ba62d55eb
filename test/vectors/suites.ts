/* Every vector that others published and that is here, put to gatehouse: how many there are, how many it judges
   as they say, and why the rest differ. `npm test` holds the figures, `npm run evidence vectors` prints them. */
import assert from 'node:assert/strict';
import { isJsonObject, type JsonObject } from '../../src/verify/base/encoding.ts';
import { factsOf, importSigningKey, type Algorithm } from '../../src/verify/keys/jwk.ts';
import { judgeJws, judgeSignature, judgeUnderKeySet, partsOf, type Judgement } from './judge.ts';
import { bytesOf, listOf, onlyWith, readVectors, textOf } from './read.ts';

/** A vector with what its authors and gatehouse say of it. */
interface Judged {
  readonly name: string;
  /** As its authors name it. */
  readonly algorithm: unknown;
  readonly isValid: boolean;
  readonly judgement: Judgement;
}

export interface Suite {
  readonly name: string;
  readonly source: string;
  readonly version: string;
  /** How many its authors published. */
  readonly published: number;
  /** How many of them are here and were put to gatehouse. */
  readonly tried: number;
  /** How many it judges as its authors do. */
  readonly same: number;
  /** Why the others differ, with their names. */
  readonly different: Readonly<Record<string, readonly string[]>>;
}

/**
 * All six, as an operator may list them. An RSA key without `alg` verifies the first of them that it
 * supports.
 */
const SIX: readonly Algorithm[] = ['RS256', 'PS256', 'ES256', 'ES384', 'ES512', 'EdDSA'];

const UNSUPPORTED =
  'valid, but refused: the algorithm is not one of the six (docs/how-a-request-is-checked.md)';

const MISNAMED = 'valid, but refused: the key has the alg ES521, which is a misprint for ES512';

const ROCA =
  'invalid, but accepted: keys of the generator with CVE-2017-15361 are not told apart (docs/keys.md)';

/** Why gatehouse and the authors of a vector may disagree; any other disagreement is a fault. */
function reasonFor({ name, algorithm, isValid, judgement }: Judged): string {
  if (isValid && !SIX.some((one) => one === algorithm)) return UNSUPPORTED;
  if (isValid && judgement === 'refused: algorithm' && algorithm === 'ES512') return MISNAMED;
  if (!isValid && judgement === 'holds' && name.endsWith('rejectsKeyWithRocaVulnerability')) return ROCA;
  return assert.fail(`${name}: ${isValid ? 'valid' : 'invalid'}, and ${judgement}`);
}

type Heading = Pick<Suite, 'name' | 'source' | 'version' | 'published'>;

function suiteOf(heading: Heading, judged: readonly Judged[]): Suite {
  const isSame = ({ isValid, judgement }: Judged) => isValid === (judgement === 'holds');
  const different: Record<string, string[]> = {};
  for (const one of judged.filter((each) => !isSame(each))) {
    (different[reasonFor(one)] ??= []).push(one.name);
  }
  return { ...heading, tried: judged.length, same: judged.filter(isSame).length, different };
}

const object = (value: unknown): JsonObject => (isJsonObject(value) ? value : assert.fail('not an object'));

function isValid(result: unknown): boolean {
  assert.ok(result === 'valid' || result === 'invalid');
  return result === 'valid';
}

function jsonWebSignatures(): Suite {
  const { file, source, version } = readVectors('wycheproof-json-web-signature.origin.json', [
    'file',
    'sha256',
  ]);
  const { numberOfTests, testGroups } = JSON.parse(bytesOf(textOf(file)).toString());
  const judged = listOf(testGroups).flatMap((group) => {
    const { public: given, private: secret, tests } = object(group);
    const jwk = object(given ?? secret);
    const key = importSigningKey(jwk, SIX);
    return listOf(tests).map((test) => {
      const { tcId, jws, result, comment } = object(test);
      const judgement = judgeJws(textOf(jws), key);
      const parts = partsOf(textOf(jws));
      const algorithm = typeof parts === 'string' ? jwk.alg : parts.header.alg;
      return { name: `${tcId} ${comment}`, algorithm, isValid: isValid(result), judgement };
    });
  });
  return suiteOf(
    { name: 'Wycheproof JWS', source: textOf(source), version: textOf(version), published: numberOfTests },
    judged,
  );
}

async function jsonWebKeys(): Promise<Suite> {
  const file = readVectors('wycheproof-json-web-key.json', ['numberOfTests', 'tests']);
  const judged = await Promise.all(
    listOf(file.tests).map(async (test) => {
      const { tcId, comment, keys, jws, result } = onlyWith(test, [
        'tcId',
        'comment',
        'keys',
        'jws',
        'result',
      ]);
      const judgement = await judgeUnderKeySet(textOf(jws), listOf(keys).map(object));
      const algorithm = object(listOf(keys)[0]).alg;
      return { name: `${tcId} ${textOf(comment)}`, algorithm, isValid: isValid(result), judgement };
    }),
  );
  const { source, version, numberOfTests } = file;
  return suiteOf(
    {
      name: 'Wycheproof JWK',
      source: textOf(source),
      version: textOf(version),
      published: Number(numberOfTests),
    },
    judged,
  );
}

const FILE_MEMBERS = ['file', 'commit', 'numberOfTests', 'algorithm', 'jwk', 'tests'];

function signatures(): readonly Suite[] {
  const { files } = readVectors('wycheproof-signatures.json', ['files']);
  return listOf(files).map((value) => {
    const { file, commit, numberOfTests, algorithm, jwk, tests } = onlyWith(value, FILE_MEMBERS);
    const judged = listOf(tests).map((test) => {
      const { tcId, comment, msg, sig, result } = onlyWith(test, ['tcId', 'comment', 'msg', 'sig', 'result']);
      const [message, signature] = [msg, sig].map((hex) => Buffer.from(textOf(hex), 'hex'));
      const judgement = judgeSignature(object(jwk), algorithm as Algorithm, message!, signature!);
      return { name: `${tcId} ${textOf(comment)}`, algorithm, isValid: isValid(result), judgement };
    });
    return suiteOf(
      {
        name: `Wycheproof ${textOf(algorithm)}`,
        source: `C2SP/wycheproof, testvectors_v1/${textOf(file)}`,
        version: `commit ${textOf(commit)}`,
        published: Number(numberOfTests),
      },
      judged,
    );
  });
}

/** Examples of an RFC, all of them valid there. */
function examples(name: string, file: string, more: readonly string[] = []): Suite {
  const { source, version, examples: all } = readVectors(file, ['examples', ...more]);
  const judged = listOf(all).map((value): Judged => {
    const { section, alg, jwk, jws } = onlyWith(value, ['section', 'alg', 'jwk', 'jws']);
    const key = jwk === null ? 'algorithm-refused' : importSigningKey(object(jwk), SIX);
    return { name: textOf(section), algorithm: alg, isValid: true, judgement: judgeJws(textOf(jws), key) };
  });
  return suiteOf(
    { name, source: textOf(source), version: textOf(version), published: judged.length },
    judged,
  );
}

/** The examples that stand in files of their own. */
function others(): readonly Suite[] {
  const a2 = readVectors('rfc7515-a2.json', ['jwk', 'jws', 'header', 'payload']);
  const thumbprint = readVectors('rfc7638-3-1.json', ['jwk', 'thumbprint']);
  const okp = readVectors('rfc8037.json', ['examples', 'thumbprint']);
  const dpop = readVectors('rfc9449.json', ['jwk', 'thumbprint', 'accessToken', 'proofs']);

  const heading = (
    name: string,
    { source, version }: { source?: unknown; version?: unknown },
    published: number,
  ) => ({
    name,
    source: textOf(source),
    version: textOf(version),
    published,
  });

  const computes = (jwk: unknown, expected: unknown): Judged => {
    const key = importSigningKey(object(jwk), SIX);
    const isRight = typeof key !== 'string' && factsOf(key).thumbprint === expected;
    return {
      name: 'thumbprint',
      algorithm: 'RS256',
      isValid: true,
      judgement: isRight ? 'holds' : 'does not match',
    };
  };

  const proofs = listOf(dpop.proofs).map((value): Judged => {
    const { section, proof } = onlyWith(value, ['section', 'proof', 'payload']);
    const key = importSigningKey(object(dpop.jwk), SIX);
    return {
      name: textOf(section),
      algorithm: 'ES256',
      isValid: true,
      judgement: judgeJws(textOf(proof), key),
    };
  });

  const rs256 = judgeJws(textOf(a2.jws), importSigningKey(object(a2.jwk), SIX));
  const [example] = listOf(okp.examples);
  return [
    suiteOf(heading('RFC 7515 A.2', a2, 1), [
      { name: 'A.2', algorithm: 'RS256', isValid: true, judgement: rs256 },
    ]),
    suiteOf(heading('RFC 7638', thumbprint, 1), [computes(thumbprint.jwk, thumbprint.thumbprint)]),
    suiteOf(heading('RFC 8037 A.3', okp, 1), [computes(object(example).jwk, okp.thumbprint)]),
    suiteOf(heading('RFC 9449', dpop, 3), [...proofs, computes(dpop.jwk, dpop.thumbprint)]),
  ];
}

export async function runSuites(): Promise<readonly Suite[]> {
  return [
    jsonWebSignatures(),
    await jsonWebKeys(),
    ...signatures(),
    examples('RFC 7515', 'rfc7515.json'),
    examples('RFC 7520', 'rfc7520.json'),
    examples('RFC 8037', 'rfc8037.json', ['thumbprint']),
    ...others(),
  ];
}

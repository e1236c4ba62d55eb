/* The code that exists for speed alone, how the service works without each part, and the case that feels it
   most. */
import type { Load } from '../bench/loads.ts';
import type { Change } from '../variants/tree.ts';

export interface Shortcut {
  readonly name: string;
  readonly load: Load;
  readonly changes: readonly Change[];
}

const shortcut = (name: string, load: Load, file: string, was: string, becomes: string): Shortcut => ({
  name,
  load,
  changes: [{ file: `src/${file}`, was, becomes }],
});

const IN_ONE_PIECE = `if (content !== '') {
    response.cork();
    response.write(content);
    response.uncork();
  }
  response.end();`;

export const SHORTCUTS: readonly Shortcut[] = [
  shortcut(
    'a response is written in one piece',
    'no-token',
    'service/request/responder.ts',
    IN_ONE_PIECE,
    'response.end(content);',
  ),
  {
    name: 'an empty body ends at once',
    load: 'warm',
    changes: [
      {
        file: 'src/service/request/exchange.ts',
        was: 'this.readableEnded && this.listenerCount',
        becomes: 'this.readableEnded && this.readableAborted && this.listenerCount',
      },
      {
        file: 'src/service/request/exchange.ts',
        was: "RequestStream.prototype, 'readableEnded'",
        becomes: "RequestStream.prototype, 'isReadableEnded'",
      },
    ],
  },
  shortcut(
    'literal paths are indexed beforehand',
    'warm',
    'service/routes/router.ts',
    'found.get(path) ??',
    "found.get('') ??",
  ),
  shortcut(
    'the reply to a refusal is built once',
    'no-token',
    'gate/replies/refusal-replies.ts',
    'values.set(key, value);',
    'values.delete(key);',
  ),
  shortcut(
    'objects that inherit nothing share a prototype',
    'cold',
    'verify/base/encoding.ts',
    'Object.create(NOTHING)',
    'Object.create(Object.getPrototypeOf(NOTHING))',
  ),
  shortcut(
    'a token is cached on its second use',
    'cold',
    'verify/base/cache.ts',
    'marks[slot] === mark || marks[slot + 1] === mark',
    'slot >= 0',
  ),
  shortcut(
    'the lengths of field names are compared first',
    'no-token',
    'verify/request/facts.ts',
    'field.length === name.length && ',
    '',
  ),
  shortcut(
    "the lengths of the names of a reply's fields are compared first",
    'no-token',
    'service/request/exchange.ts',
    'other.length === name.length && ',
    '',
  ),
  shortcut(
    'a valid host is not checked again',
    'no-token',
    'verify/request/facts.ts',
    'host === lastGoodHost ||',
    "(host === lastGoodHost && host === '') ||",
  ),
  shortcut(
    'white space in a token is found without a pattern',
    'warm',
    'verify/request/facts.ts',
    "for (const separator of SEPARATORS) {\n    if (text.includes(separator)) return false;\n  }\n  return text !== '';",
    'return SEPARATORS.length > 0 && /^[^\\s,]+$/.test(text);',
  ),
  shortcut(
    'the key of a proof is imported once',
    'proofs',
    'verify/keys/jwk.ts',
    'const known = key ?? checkLengths(members, MAX_PROOF_BITS);',
    'const known = (key && undefined) ?? checkLengths(members, MAX_PROOF_BITS);',
  ),
  shortcut(
    'the log lines of one turn are written together',
    'logged',
    'options/log.ts',
    "if (unwritten === '') {\n    setImmediate(writeLines);\n    process.on('exit', writeLines);\n  }\n  unwritten += line;",
    'unwritten += line;\n  writeLines();',
  ),
  shortcut(
    'a new token is looked up without its digest',
    'cold',
    'verify/token/verify.ts',
    "cached === undefined || cached.digest !== hash('sha256', token, 'base64url')",
    "hash('sha256', token, 'base64url') !== cached?.digest || cached === undefined",
  ),
  shortcut(
    'a body is handed to its reader without events',
    'post',
    'service/request/exchange.ts',
    'this.#reader = reader;\n\n    if (arrived !== null) reader(arrived);',
    "if (arrived !== null) reader(arrived);\n    this.on('data', reader).on('end', () => reader(null));\n    if (!this.complete) return;",
  ),
  shortcut(
    'no fields are gathered for a line that is not written',
    'no-token',
    'gate/observe.ts',
    "isAccessLogged || expect !== undefined || reason === 'bug'",
    'isAccessLogged || expect !== undefined || reason.length > 0',
  ),
];

/* Finds citations of standards in text: `RFC 7517 §4.5, §4.2` are two clauses, `RFC 7515 §5.2(2), (6)` two as
   well. */

/** One clause, such as `RFC 9449 §4.3(9)`, or the whole standard, such as `RFC 7638`. */
export type Clause = string;

/** The standards that the index is about; others, and the documents, are cited too but not indexed. */
export const INDEXED = [
  'RFC 6750',
  'RFC 7515',
  'RFC 7517',
  'RFC 7519',
  'RFC 7638',
  'RFC 8725',
  'RFC 9068',
  'RFC 9110',
  'RFC 9449',
  'RFC 9470',
  'RFC 9728',
  'Fetch',
];

const PARTS = new RegExp(
  [
    String.raw`(?<standard>RFC \d{4})`,
    String.raw`(?<fetch>\bFetch(?: standard)? (?=§))`,
    String.raw`(?<other>docs/|OpenID|YAML)`,
    String.raw`(?<section>§\d+(?:\.\d+)*)(?<item>\(\d+\))?(?<last>-\d+(?:\.\d+)*)?`,
    String.raw`(?:, | and | to )(?<more>\(\d+\))`,
  ].join('|'),
  'g',
);

/** Every clause that a text cites, in order. A section belongs to the standard named last before it. */
export function clausesIn(text: string): Clause[] {
  const found: Clause[] = [];
  let standard = '';
  let section = '';
  let isBare = false;

  const endBare = () => {
    if (isBare) found.push(standard);
    isBare = false;
  };

  for (const { groups = {} } of text.matchAll(PARTS)) {
    if (groups.standard !== undefined || groups.fetch !== undefined || groups.other !== undefined) {
      endBare();
      standard = groups.standard ?? (groups.fetch === undefined ? '' : 'Fetch');
      section = '';
      isBare = standard !== '';
    } else if (standard !== '' && groups.section !== undefined) {
      isBare = false;
      section = `${standard} ${groups.section}`;
      found.push(section + (groups.item ?? ''), ...upTo(groups.last).map((last) => `${standard} §${last}`));
    } else if (section !== '' && groups.more !== undefined) found.push(section + groups.more);
  }
  endBare();
  return found.filter((clause) => INDEXED.some((name) => clause === name || clause.startsWith(`${name} `)));

  /** `§4.2-4.4` means 4.2, 4.3 and 4.4. */
  function upTo(last: string | undefined): string[] {
    if (last === undefined) return [];
    const [chapter = '', end = ''] = last.slice(1).split(/\.(?=\d+$)/);
    const start = Number(section.split('.').at(-1));
    return Array.from({ length: Number(end) - start }, (_, index) => `${chapter}.${start + 1 + index}`);
  }
}

/** True when `part` is the clause itself or lies within it. */
export const isWithin = (part: Clause, clause: Clause) =>
  part === clause ||
  part.startsWith(`${clause}.`) ||
  part.startsWith(`${clause}(`) ||
  part.startsWith(`${clause} `);

/** The comments of a source text; lines of `//` that follow one another are one comment. */
export const commentsOf = (source: string): string[] =>
  [...source.matchAll(/\/\*[^]*?\*\/|(?:(?:^|(?<=\s))\/\/ .*(?:\n[ \t]*(?=\/\/ )|$))+/gm)].map(([comment]) =>
    comment.replace(/\s*\n\s*(?:\*|\/\/) ?/g, ' '),
  );

/** The source text with its comments blank, line for line. What stands in a path, such as `/a/**`, begins none. */
export const withoutComments = (source: string) =>
  source
    .replace(/(?<!\S)\/\*[^]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ''))
    .replace(/(^|\s)\/\/ .*$/gm, '$1');

/* The static imports of source texts. */

export interface Import {
  readonly from: string;
  /** Without imports of types. */
  readonly names: readonly string[];
  readonly isType: boolean;
}

/** The text without its comments, with the same lines. */
export const withoutComments = (text: string): string =>
  text.replace(/\/\*[^]*?\*\//g, (comment) => comment.replace(/[^\n]/g, '')).replace(/(^|\s)\/\/.*$/gm, '$1');

/** The static imports and re-exports of a text. */
export function importsOf(text: string): Import[] {
  const statement = /^(?:import|export)\s+(type\s+)?(?:\{([^}]*)\}|\*[^'\n]*|\w+)\s+from\s+'([^']+)';/gm;
  return [...withoutComments(text).matchAll(statement)].map(([, type, list, from]) => {
    const names = (list ?? '*')
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '');
    const values = names.filter((name) => !name.startsWith('type '));
    return { from: from!, names: values, isType: type !== undefined || values.length === 0 };
  });
}

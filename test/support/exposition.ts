/* Reads the text format 0.0.4 of Prometheus, more strictly than any scraper: it throws for whatever is not
   exactly as the format demands. */
import assert from 'node:assert/strict';

export interface Family {
  readonly type: string;
  readonly help: string;
  /** The value of each sample, by its name with labels as written. */
  readonly samples: ReadonlyMap<string, number>;
}

const NAME = '[a-z][a-z0-9_]*';

const SAMPLE = new RegExp(
  `^(${NAME})(\\{(?:${NAME}="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"(?:,(?=[a-z])|(?=\\})))+\\})? (\\+Inf|[0-9.e+-]+)$`,
);

function valueOf(text: string): number {
  const value = text === '+Inf' ? Infinity : Number(text);
  assert.ok(!Number.isNaN(value), text);
  return value;
}

/** Checks a histogram: each series has its buckets in order, never falling, and the last equals the count. */
function checkHistogram(name: string, samples: ReadonlyMap<string, number>): void {
  const series = new Map<string, { bounds: number[]; counts: number[]; rest: Record<string, number> }>();
  for (const [sample, value] of samples) {
    const suffix = /^[a-z_]+?_(bucket|sum|count)\{/.exec(sample)?.[1] ?? assert.fail(sample);
    const le = /,le="([^"]+)"\}$/.exec(sample)?.[1];
    const labels = sample.slice(sample.indexOf('{') + 1).replace(/(?:,le="[^"]+")?\}$/, '');
    const one = series.get(labels) ?? { bounds: [], counts: [], rest: {} };
    series.set(labels, one);
    assert.equal(le !== undefined, suffix === 'bucket', sample);
    if (le === undefined) one.rest[suffix] = value;
    else {
      one.bounds.push(valueOf(le));
      one.counts.push(value);
    }
  }
  for (const [labels, { bounds, counts, rest }] of series) {
    assert.deepEqual(
      bounds,
      [...bounds].sort((one, other) => one - other),
      labels,
    );
    assert.deepEqual(
      counts,
      [...counts].sort((one, other) => one - other),
      `${name} ${labels}`,
    );
    assert.equal(bounds.at(-1), Infinity);
    assert.deepEqual(Object.keys(rest).sort(), ['count', 'sum']);
    assert.equal(counts.at(-1), rest.count);
    assert.ok((rest.sum ?? -1) >= 0);
  }
}

/** The families of a text, by name. */
export function readExposition(text: string): ReadonlyMap<string, Family> {
  assert.ok(text.endsWith('\n'));
  const families = new Map<string, { type: string; help: string; samples: Map<string, number> }>();
  let current = '';
  let help: string | undefined;
  for (const line of text.slice(0, -1).split('\n')) {
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) ([a-z0-9_]+) (.+)$/.exec(line) ?? [];
    if (kind === 'HELP') {
      assert.equal(help, undefined, line);
      assert.ok(!families.has(name), `${name} twice`);
      assert.match(rest, /^[^\\]+\.$/);
      help = rest;
      current = name;
    } else if (kind === 'TYPE') {
      assert.equal(name, current, 'a type behind its own help');
      assert.match(rest, /^(?:counter|gauge|histogram)$/);
      families.set(name, { type: rest, help: help ?? assert.fail(line), samples: new Map() });
      help = undefined;
    } else {
      const [, sample = assert.fail(line), labels = '', value = ''] = SAMPLE.exec(line) ?? [];
      const family = families.get(current) ?? assert.fail(line);
      const suffix = family.type === 'histogram' ? /^_(?:bucket|sum|count)$/ : /^$/;
      assert.ok(sample.startsWith(current), line);
      assert.match(sample.slice(current.length), suffix);
      assert.ok(!family.samples.has(sample + labels), `${line} twice`);
      family.samples.set(sample + labels, valueOf(value));
    }
  }
  for (const [name, { type, samples }] of families) {
    assert.ok(samples.size > 0, name);
    assert.equal(type === 'counter', name.endsWith('_total'), name);
    if (type === 'histogram') checkHistogram(name, samples);
  }
  return families;
}

/** A strict parser for the Prometheus text format 0.0.4. Prometheus accepts every text that this parser accepts. */

export interface ReadSample {
  name: string;
  labels: Record<string, string>;
  value: number;
  at?: number;
}

export interface ReadFamily {
  type: string;
  help: string;
  samples: ReadSample[];
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: (-?\d+))?$/;
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\"n])*)"(?:,|$)/;

function readLabels(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (let rest = text; rest !== ''; ) {
    const match = LABEL.exec(rest);
    const [whole = '', name = '', value = ''] = match ?? [];
    if (match === null || name in labels) throw new Error(`bad labels: ${line}`);
    labels[name] = value.replace(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char));
    rest = rest.slice(whole.length);
  }
  return labels;
}

function readValue(text: string, line: string): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  if (!/^-?\d+(\.\d+)?(e[+-]?\d+)?$/.test(text)) throw new Error(`bad value: ${line}`);
  return Number(text);
}

/**
 * Returns the metric families by name. Throws unless the lines of each family are consecutive and have help and type, each sample occurs
 * once, and buckets are in order.
 */
export function readMetrics(text: string): Map<string, ReadFamily> {
  if (!text.endsWith('\n')) throw new Error('the last line has no line feed');
  const families = new Map<string, ReadFamily>();
  const seen = new Set<string>();
  let current = '';
  for (const line of text.slice(0, -1).split('\n')) {
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
    if (comment !== null) {
      const [, what, name = '', rest = ''] = comment;
      if (what === 'HELP') {
        if (families.has(name)) throw new Error(`the family ${name} is not in one piece`);
        families.set(name, { type: '', help: rest, samples: [] });
        current = name;
      } else {
        const family = families.get(name);
        if (family === undefined || current !== name || family.type !== '') throw new Error(`out of place: ${line}`);
        if (!['counter', 'gauge', 'histogram'].includes(rest)) throw new Error(`unknown type: ${line}`);
        family.type = rest;
      }
      continue;
    }
    const match = SAMPLE.exec(line);
    if (match === null) throw new Error(`bad line: ${line}`);
    const [, name = '', labelText = '', valueText = '', at] = match;
    const family = families.get(current);
    const base = family?.type === 'histogram' ? name.replace(/_(bucket|sum|count)$/, '') : name;
    if (family === undefined || family.type === '' || base !== current) throw new Error(`out of place: ${line}`);
    const labels = readLabels(labelText, line);
    const key = `${name} ${JSON.stringify(Object.entries(labels).sort())}`;
    if (seen.has(key)) throw new Error(`duplicate sample: ${line}`);
    seen.add(key);
    family.samples.push({
      name,
      labels,
      value: readValue(valueText, line),
      at: at === undefined ? undefined : Number(at),
    });
  }
  for (const [name, family] of families) if (family.type === 'histogram') checkBuckets(name, family.samples);
  return families;
}

function checkBuckets(family: string, samples: readonly ReadSample[]): void {
  const series = Map.groupBy(samples, ({ labels: { le: _, ...rest } }) => JSON.stringify(rest));
  for (const [labels, each] of series) {
    const buckets = each.filter(({ name }) => name === `${family}_bucket`);
    const bounds = buckets.map(({ labels: { le = '' } }) => readValue(le, `${family} ${labels}`));
    const counts = buckets.map(({ value }) => value);
    const ascends = (numbers: number[]): boolean =>
      numbers.every((value, index) => index === 0 || value >= (numbers[index - 1] ?? 0));
    const count = each.find(({ name }) => name === `${family}_count`)?.value;
    const whole = bounds.at(-1) === Number.POSITIVE_INFINITY && counts.at(-1) === count;
    if (!ascends(bounds) || !ascends(counts) || !whole || !each.some(({ name }) => name === `${family}_sum`)) {
      throw new Error(`bad histogram: ${family} ${labels}`);
    }
  }
}

/** Returns the sample that has the name and at least the given labels. Throws unless there is exactly one. */
export function metricOf(
  families: ReadonlyMap<string, ReadFamily>,
  name: string,
  labels: Record<string, string> = {},
): ReadSample {
  const all = [...families.values()].flatMap(({ samples }) => samples);
  const found = all.filter(
    (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  );
  const [only] = found;
  if (only === undefined || found.length > 1)
    throw new Error(`${found.length} samples of ${name} ${JSON.stringify(labels)}`);
  return only;
}

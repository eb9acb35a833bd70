import type { Millis } from '../machinery/time.ts';
/**
 * Counters, gauges and histograms. Counting must be cheap: the text is generated only when a client reads the metrics.
 * Source: the Prometheus text format 0.0.4.
 */

export interface MetricSample {
  /** Appended to the name of a histogram's family: _bucket, _sum or _count. Absent for counters and gauges. */
  suffix?: string;
  labels: Readonly<Record<string, string>>;
  value: number;
  /** When the value was measured, for the sample's timestamp. Absent: the sample has no timestamp. */
  at?: Millis;
}

export interface MetricFamily {
  name: string;
  help: string;
  type: 'counter' | 'gauge' | 'histogram';
  samples: readonly MetricSample[];
}

/** `labelValues` are in the order of the label names. */
export interface Counter {
  add(amount: number, ...labelValues: string[]): void;
  /** Removes the series with these label values. Call it when the labeled object no longer exists. */
  remove(...labelValues: string[]): void;
}

export interface Histogram {
  observe(value: number, ...labelValues: string[]): void;
}

export interface Metrics {
  counter(name: string, help: string, labelNames: readonly string[]): Counter;
  /** Add negative amounts to decrease the value. */
  gauge(name: string, help: string, labelNames: readonly string[]): Counter;
  /** `bounds`: the upper bounds of the buckets in ascending order; a bucket up to +Inf is added. */
  histogram(name: string, help: string, labelNames: readonly string[], bounds: readonly number[]): Histogram;
  /** `families` runs each time the metrics are read. */
  source(families: () => readonly MetricFamily[] | Promise<readonly MetricFamily[]>): void;
  /** Rejects if a source rejects. */
  families(): Promise<MetricFamily[]>;
}

/** Separates the label values in the key of a series. NUL does not occur in label values. */
const SEPARATOR = '\u0000';

export function createMetrics(): Metrics {
  const sources: (() => readonly MetricFamily[] | Promise<readonly MetricFamily[]>)[] = [];
  const summed =
    (type: 'counter' | 'gauge') =>
    (name: string, help: string, labelNames: readonly string[]): Counter => {
      const values = new Map<string, number>();
      if (labelNames.length === 0) values.set('', 0);
      sources.push(() => [
        {
          name,
          help,
          type,
          samples: [...values].map(([key, value]) => ({ labels: labelsOf(labelNames, key), value })),
        },
      ]);
      return {
        add(amount, ...labelValues) {
          const key = labelValues.join(SEPARATOR);
          values.set(key, (values.get(key) ?? 0) + amount);
        },
        remove: (...labelValues) => void values.delete(labelValues.join(SEPARATOR)),
      };
    };
  return {
    counter: summed('counter'),
    gauge: summed('gauge'),
    histogram(name, help, labelNames, bounds) {
      const series = new Map<string, Series>();
      sources.push(() => [
        {
          name,
          help,
          type: 'histogram' as const,
          samples: [...series].flatMap(([key, each]) => seriesSamples(each, bounds, labelsOf(labelNames, key))),
        },
      ]);
      return {
        observe(value, ...labelValues) {
          const key = labelValues.join(SEPARATOR);
          let one = series.get(key);
          if (one === undefined) {
            one = { counts: new Float64Array(bounds.length + 1), sum: 0 };
            series.set(key, one);
          }
          const bucket = bounds.findIndex((bound) => value <= bound);
          const index = bucket < 0 ? bounds.length : bucket;
          one.counts[index] = (one.counts[index] ?? 0) + 1;
          one.sum += value;
        },
      };
    },
    source: (families) => void sources.push(families),
    families: async () => (await Promise.all(sources.map((source) => source()))).flat(),
  };
}

interface Series {
  /** Counts per bucket, not cumulative; the last bucket is +Inf. */
  counts: Float64Array;
  sum: number;
}

function seriesSamples({ counts, sum }: Series, bounds: readonly number[], labels: Record<string, string>) {
  const samples: MetricSample[] = [];
  let total = 0;
  for (const [index, count] of counts.entries()) {
    total += count;
    const le = numberText(bounds[index] ?? Number.POSITIVE_INFINITY);
    samples.push({ suffix: '_bucket', labels: { ...labels, le }, value: total });
  }
  samples.push({ suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: total });
  return samples;
}

function labelsOf(names: readonly string[], key: string): Record<string, string> {
  const values = key.split(SEPARATOR);
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']));
}

export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Returns the families in the Prometheus text format. Families without samples are omitted. */
export function metricsText(families: readonly MetricFamily[]): string {
  const lines: string[] = [];
  for (const { name, help, type, samples } of families) {
    if (samples.length === 0) continue;
    lines.push(`# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`, `# TYPE ${name} ${type}`);
    for (const { suffix = '', labels, value, at } of samples) {
      const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
      const shown = pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
      lines.push(`${name}${suffix}${shown} ${numberText(value)}${at === undefined ? '' : ` ${at}`}`);
    }
  }
  return lines.map((line) => `${line}\n`).join('');
}

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
}

export const family = (
  type: 'counter' | 'gauge',
  name: string,
  help: string,
  samples: readonly MetricSample[],
): MetricFamily => ({ name, help, type, samples });

export const single = (value: number, at?: Millis): MetricSample[] => [{ labels: {}, value, at }];

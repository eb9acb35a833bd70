/** Source: k8s.io/apimachinery/pkg/util/duration (HumanDuration) and the printers of v1.33 (behavior). */

import type { LabelSelectorObject } from '../machinery/labels.ts';
import type { KubeObject } from '../machinery/meta.ts';
import { type Millis, parseTime } from '../machinery/time.ts';
import type { TableColumn, WriteContext } from './kind.ts';

export interface CellColumn<T> extends TableColumn {
  cell(object: T, context: WriteContext): string | number;
}

interface ColumnOptions {
  wide?: boolean;
  type?: TableColumn['type'];
  format?: 'name';
}

/** Defines a column whose cells the kind's row() computes. A `wide` column is shown only with -o wide. */
export const header = (name: string, description: string, options: ColumnOptions = {}): TableColumn => ({
  name,
  type: options.type ?? 'string',
  format: options.format ?? '',
  description,
  priority: options.wide === true ? 1 : 0,
});

export const column = <T>(
  name: string,
  description: string,
  cell: CellColumn<T>['cell'],
  options: ColumnOptions = {},
): CellColumn<T> => ({ ...header(name, description, options), cell });

export const nameColumn: CellColumn<KubeObject> = column(
  'Name',
  'The name of the object, unique within its kind and namespace.',
  ({ metadata }) => metadata.name,
  { format: 'name' },
);

export const ageColumn: CellColumn<KubeObject> = column(
  'Age',
  'The time since the object was created.',
  ({ metadata }, { now }) => ageCell(metadata.creationTimestamp, now),
);

/** Formats a duration with one or two units, such as 45s, 3m20s, 5h, 5d3h and 2y20d; `<invalid>` if it is -2 s or less. */
export function humanDuration(millis: number): string {
  const seconds = Math.trunc(millis / 1000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.trunc(seconds / 60);
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.trunc(minutes / 60);
  if (hours < 8) return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`;
  if (hours < 48) return `${hours}h`;
  const days = Math.trunc(hours / 24);
  if (hours < 24 * 8) return hours % 24 === 0 ? `${days}d` : `${days}d${hours % 24}h`;
  if (hours < 24 * 365 * 2) return `${days}d`;
  const years = Math.trunc(days / 365);
  if (hours < 24 * 365 * 8) return days % 365 === 0 ? `${years}y` : `${years}y${days % 365}d`;
  return `${years}y`;
}

/** The time from the timestamp to `now`, such as `3m20s`; `<unknown>` if the timestamp is absent or invalid. */
export function ageCell(timestamp: string | undefined, now: Millis): string {
  const then = parseTime(timestamp);
  return then === undefined ? '<unknown>' : humanDuration(now - then);
}

/** The labels as sorted texts, such as `a=b,c=d`; `<none>` if there are no labels. */
export function labelsCell(labels: Record<string, string> | undefined): string {
  const entries = Object.entries(labels ?? {});
  if (entries.length === 0) return '<none>';
  return entries
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(',');
}

const requirementText = (key: string, operator: string, values: readonly string[]): string | undefined => {
  const list = `(${[...values].sort().join(',')})`;
  const texts: Record<string, string> = {
    In: `${key} in ${list}`,
    NotIn: `${key} notin ${list}`,
    Exists: key,
    DoesNotExist: `!${key}`,
  };
  return texts[operator];
};

/** The requirements of a selector, sorted by key, such as `a=b,c in (d,e)`; empty if there are none, undefined if one is invalid. */
export function selectorText(selector: LabelSelectorObject | undefined): string | undefined {
  const requirements: [string, string | undefined][] = [
    ...Object.entries(selector?.matchLabels ?? {}).map(([key, value]): [string, string] => [key, `${key}=${value}`]),
    ...(selector?.matchExpressions ?? []).map(({ key, operator, values = [] }): [string, string | undefined] => [
      key,
      requirementText(key, operator, values),
    ]),
  ].sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
  const texts = requirements.map(([, text]) => text);
  return texts.includes(undefined) ? undefined : texts.join(',');
}

/** Like selectorText(), but `<none>` if there are no requirements, and `<error>` if one is invalid. */
export function selectorCell(selector: LabelSelectorObject | undefined): string {
  const text = selectorText(selector);
  return text === undefined ? '<error>' : text === '' ? '<none>' : text;
}

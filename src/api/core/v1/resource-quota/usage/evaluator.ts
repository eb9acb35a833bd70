/** How a quota measures the objects of one resource. */
import type { KubeObject } from '../../../../../machinery/meta.ts';
import type { Quantity } from '../../../../../machinery/quantity.ts';
import type { Millis } from '../../../../../machinery/time.ts';
import type { ScopedResourceSelectorRequirement } from '../../../../generated/types.ts';

/** Amounts by the names that quotas use, such as `requests.cpu` (in cores) or `count/pods`. */
export type Usage = Map<string, Quantity>;

export interface Evaluator<T extends KubeObject = KubeObject> {
  /** Whether a quota with this name in its `hard` list limits objects of the resource. */
  measures(name: string): boolean;
  usage(object: T, now: Millis): Usage;
  /** Absent: quotas with scopes do not apply to the resource. */
  inScope?(object: T, scope: ScopedResourceSelectorRequirement): boolean;
  /** Returns the error for an object that does not specify a value for each of these names; undefined if no value is missing. */
  missing?(object: T, names: readonly string[]): string | undefined;
  /** Returns when the usage of the object changes without an update of the object; undefined if it does not. */
  changesAt?(object: T, now: Millis): Millis | undefined;
  /** Updates of the object are charged, because they can increase the usage. */
  chargesUpdates?: true;
}

/** The name with which a quota counts the objects of any resource. */
export const countName = (group: string, resource: string): string =>
  group === '' ? `count/${resource}` : `count/${resource}.${group}`;

export const quantityOf = (amount: number): Quantity => ({
  nano: BigInt(amount) * 1_000_000_000n,
  format: 'DecimalSI',
});

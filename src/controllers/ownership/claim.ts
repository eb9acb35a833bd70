/**
 * Decides which objects a controller adopts and which it releases. The functions are pure.
 * Source: ClaimObject of pkg/controller/controller_ref_manager.go of v1.33 (behavior).
 */
import { type LabelSelectorObject, labelSelectorMatcher } from '../../machinery/labels.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { controllerOf, isControlledBy } from './owner.ts';

export interface Claim<T> {
  /** Objects that the owner controls and keeps. */
  owned: T[];
  /** Objects without a controller that the owner must adopt. */
  adopt: T[];
  /** Objects of the owner that its selector or `isMember` no longer matches. */
  release: T[];
}

/**
 * An owner that is being deleted adopts and releases nothing. An object that is being deleted is not adopted. Objects of other controllers
 * and namespaces are ignored. As in upstream, a missing or empty selector matches nothing.
 */
export function claim<T extends KubeObject>(
  owner: KubeObject,
  selector: LabelSelectorObject | undefined,
  candidates: Iterable<T>,
  isMember: (object: T) => boolean = () => true,
): Claim<T> {
  const matchesSelector = labelSelectorMatcher(isEmpty(selector) ? undefined : selector);
  const isDeleting = owner.metadata.deletionTimestamp !== undefined;
  const result: Claim<T> = { owned: [], adopt: [], release: [] };
  for (const object of candidates) {
    if (object.metadata.namespace !== owner.metadata.namespace) continue;
    const matches = matchesSelector(object.metadata.labels) && isMember(object);
    if (isControlledBy(object, owner)) {
      if (matches) result.owned.push(object);
      else if (!isDeleting) result.release.push(object);
    } else if (matches && !isDeleting && controllerOf(object) === undefined) {
      if (object.metadata.deletionTimestamp === undefined) result.adopt.push(object);
    }
  }
  return result;
}

const isEmpty = (selector: LabelSelectorObject | undefined): boolean =>
  Object.keys(selector?.matchLabels ?? {}).length === 0 && (selector?.matchExpressions ?? []).length === 0;

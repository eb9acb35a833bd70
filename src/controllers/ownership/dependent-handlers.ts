/**
 * Handlers for informers of objects, such as Pods, that an owner controls or may adopt.
 * Source: the event handlers of pkg/controller/daemon and pkg/controller/statefulset of v1.33 (behavior).
 */
import type { Informer } from '../../client/informer.ts';
import type { InformerHandlers } from '../../client/local-copy.ts';
import { type LabelSelectorObject, labelSelectorMatcher } from '../../machinery/labels.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { controllerOf } from './owner.ts';

/** The key of an object in a work queue: its namespace, `/` and its name. */
export const keyOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;

const namespaceOf = ({ metadata }: KubeObject): readonly string[] => [metadata.namespace ?? ''];

export interface PossibleOwners<Owner extends KubeObject> {
  kind: string;
  owners: Pick<Informer<Owner>, 'by'>;
  selectorOf(owner: Owner): LabelSelectorObject | undefined;
  /** Called with the key of each owner that must be reconciled. */
  changed(key: string): void;
}

/**
 * The handlers report the owner that controls a changed object, and the owner that controlled it before. For an object without a
 * controller, they report the owners whose selectors match.
 */
export function dependentHandlers<Owner extends KubeObject>({
  kind,
  owners,
  selectorOf,
  changed,
}: PossibleOwners<Owner>): Required<InformerHandlers<KubeObject>> {
  const dependentChanged = (object: KubeObject): void => {
    const { namespace, labels } = object.metadata;
    const controller = controllerOf(object);
    if (controller?.kind === kind) changed(`${namespace}/${controller.name}`);
    if (controller !== undefined) return;
    for (const owner of owners.by(namespaceOf, namespace ?? ''))
      if (labelSelectorMatcher(selectorOf(owner))(labels)) changed(keyOf(owner));
  };
  return {
    added: dependentChanged,
    updated(object, old) {
      if (controllerOf(object)?.uid !== controllerOf(old)?.uid) dependentChanged(old);
      dependentChanged(object);
    },
    deleted: dependentChanged,
  };
}

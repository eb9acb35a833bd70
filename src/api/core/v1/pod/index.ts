/**
 * The Pod: defaults, validation, changes on each write, subresources and table.
 *
 * Boundary: the functions in podKind need no other objects than the Pod and, on update, the Pod that it replaces. Rules that need other
 * objects are in admission.ts and runtime-class.ts.
 * Invariants: defaults are idempotent and keep valid Pods valid. A new Pod gets a phase, a qosClass, which never changes, and a generation,
 * which increases when an update changes the spec or a delete request sets the deletionTimestamp, but not on binding.
 */
import { kind } from '../../../declaration.ts';
import type { Pod } from '../../../generated/types.ts';
import { keepDeferFields } from './compatibility/defer-settings.ts';
import { defaultPod } from './defaults.ts';
import { podDeletion, podSelectableFields, preparePodForCreate, preparePodForUpdate } from './strategy.ts';
import { podSubresources } from './subresources.ts';
import { podColumns, podRow } from './table.ts';
import { validatePodUpdate } from './validation/validate-update.ts';
import { validatePodCreate } from './validation/validation.ts';
import { podWarnings } from './validation/warnings.ts';

export const podKind = kind<Pod>('v1', 'Pod', {
  shortNames: ['po'],
  categories: ['all'],
  returnsDeletedObject: true,
  keepUnsent: keepDeferFields,
  defaults: defaultPod,
  prepareForCreate: preparePodForCreate,
  prepareForUpdate: preparePodForUpdate,
  validateCreate: validatePodCreate,
  validateUpdate: validatePodUpdate,
  // Like upstream, there are no warnings on update, because updates of Pods are frequent and rarely made by people.
  warnings: (pod, old) => (old === undefined ? podWarnings(pod) : []),
  subresources: podSubresources,
  deletion: podDeletion,
  selectableFields: podSelectableFields,
  indexedFields: ['spec.nodeName'],
  columns: podColumns,
  row: podRow,
});

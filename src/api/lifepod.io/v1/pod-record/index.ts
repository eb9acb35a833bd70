/**
 * The PodRecord: one part of the stored list of the steps of a Pod's life. A PodRecord remains after the Pod and its namespace are deleted,
 * until a controller deletes it because it is too old or all PodRecords together are too large.
 */
import { type FieldError, invalid, required } from '../../../../machinery/field-error.ts';
import { parseTime } from '../../../../machinery/time.ts';
import { kind } from '../../../declaration.ts';
import type { PodRecord } from '../../../generated/types.ts';
import { ageColumn, column } from '../../../table.ts';

export const POD_RECORDS = { group: 'lifepod.io', version: 'v1', resource: 'podrecords' };

export const recordName = (podUid: string, part: number): string => `${podUid}.${part}`;

/** The prefix of a UID that `kubectl get podrecords` shows. It is long enough to distinguish Pods of the same name. */
export const shortUid = (uid: string): string => uid.slice(0, 8);

function validate(record: PodRecord): FieldError[] {
  const errors: FieldError[] = [];
  if (!record.podName) errors.push(required('podName'));
  if (!record.podUID) errors.push(required('podUID'));
  for (const [index, { key, at, type }] of (record.transitions ?? []).entries()) {
    const path = `transitions[${index}]`;
    if (!key) errors.push(required(`${path}.key`));
    if (!type) errors.push(required(`${path}.type`));
    if (parseTime(at) === undefined) errors.push(invalid(`${path}.at`, at, 'is not a time'));
  }
  return errors;
}

export const podRecordKind = kind<PodRecord>(`${POD_RECORDS.group}/${POD_RECORDS.version}`, 'PodRecord', {
  outlivesNamespace: true,
  uncached: true,
  // If the garbage collector supported the kind, it would have to keep the metadata of all records in memory.
  propagation: 'unsupported',
  rules: [validate],
  selectableFields: ({ podName, podUID, nodeName }) => ({
    podName: podName ?? '',
    podUID: podUID ?? '',
    nodeName: nodeName ?? '',
  }),
  columns: [
    column('Pod', 'The name of the Pod.', ({ podName }) => podName ?? ''),
    column('UID', "The first characters of the Pod's UID, which distinguish Pods of the same name.", ({ podUID }) =>
      shortUid(podUID ?? ''),
    ),
    column('Steps', 'The number of steps in this part of the record.', ({ transitions }) => transitions?.length ?? 0, {
      type: 'integer',
    }),
    { ...ageColumn, description: 'The time since the first step was recorded.' },
    column('Name', 'The name of this part.', ({ metadata }) => metadata.name, { wide: true, format: 'name' }),
  ],
});

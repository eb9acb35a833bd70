/**
 * The PodRecord: one part of the stored list of the steps of a Pod's life. The node writes PodRecords, or a controller if the Pod never
 * had a node. A PodRecord remains after the Pod and its namespace are deleted, until a controller deletes it because it is too old or all
 * PodRecords together are too large. Its name consists of the Pod's UID and the number of the part.
 */
import { type FieldError, invalid, required } from '../../../../machinery/field-error.ts';
import { dns1123SubdomainErrors } from '../../../../machinery/names.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../../../../machinery/object-meta.ts';
import { parseTime } from '../../../../machinery/time.ts';
import type { PodRecord } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { ageCell, column } from '../../../table.ts';

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

export const podRecordKind: KindDefinition<PodRecord> = {
  group: POD_RECORDS.group,
  version: POD_RECORDS.version,
  kind: 'PodRecord',
  plural: POD_RECORDS.resource,
  singular: 'podrecord',
  shortNames: [],
  categories: [],
  namespaced: true,
  outlivesNamespace: true,
  uncached: true,
  schema: 'PodRecord',
  validateCreate: (record) => [
    ...validateObjectMeta(record.metadata, { namespaced: true, nameErrors: dns1123SubdomainErrors }),
    ...validate(record),
  ],
  validateUpdate: (record, old) => [...validateObjectMetaUpdate(record.metadata, old.metadata), ...validate(record)],
  subresources: {},
  selectableFields: ({ podName, podUID }) => ({ podName: podName ?? '', podUID: podUID ?? '' }),
  columns: [
    column('Pod', 'The name of the Pod.'),
    column('UID', "The first characters of the Pod's UID, which distinguish Pods of the same name."),
    column('Steps', 'The number of steps in this part of the record.', { type: 'integer' }),
    column('Age', 'The time since the first step was recorded.'),
    column('Name', 'The name of this part.', { wide: true, format: 'name' }),
  ],
  row: ({ metadata, podName, podUID, transitions }, { now }) => [
    podName ?? '',
    shortUid(podUID ?? ''),
    transitions?.length ?? 0,
    ageCell(metadata.creationTimestamp, now),
    metadata.name,
  ],
};

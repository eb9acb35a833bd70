/**
 * The scale subresource of kinds with a number of replicas: a Scale, which clients such as `kubectl scale` read and write without knowing
 * the kind.
 * Source: ScaleREST of pkg/registry/apps and ValidateScale of pkg/apis/autoscaling/validation of v1.33 (behavior and wording).
 */

import { invalid } from '../machinery/field-error.ts';
import type { KubeObject } from '../machinery/meta.ts';
import { invalidObject } from '../machinery/status.ts';
import { typeOfKind } from './facts/facts.ts';
import type { Scale } from './generated/types.ts';
import type { KindDefinition, SubresourceDefinition, TableColumn } from './kind.ts';
import { nonNegative } from './rules.ts';
import { ageColumn, type CellColumn, column, nameColumn } from './table.ts';

const GROUP = 'autoscaling';
const VERSION = 'v1';
const KIND = 'Scale';

interface Scalable extends KubeObject {
  spec?: { replicas?: number };
  status?: { replicas?: number };
}

const columns: readonly CellColumn<Scale>[] = [
  nameColumn,
  column('Desired', 'The number of replicas that there should be.', ({ spec }) => spec?.replicas ?? 0, {
    type: 'integer',
  }),
  column('Available', 'The number of replicas.', ({ status }) => status?.replicas ?? 0, { type: 'integer' }),
  ageColumn,
];

/** `selector`: the text of the selector of the object's Pods. */
export function scaleOf({ metadata, spec, status }: Scalable, selector: string): Scale {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const given = Object.entries({ name, namespace, uid, resourceVersion, creationTimestamp });
  const { replicas = 0 } = spec ?? {};
  return {
    kind: KIND,
    apiVersion: `${GROUP}/${VERSION}`,
    metadata: Object.fromEntries(given.filter(([, value]) => value !== undefined)) as unknown as Scale['metadata'],
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: status?.replicas ?? 0, ...(selector === '' ? {} : { selector }) },
  };
}

/** `selectorOf` returns the text of the selector of an object's Pods. */
export function scaleSubresource<T extends KubeObject>(
  definition: () => KindDefinition<T>,
  selectorOf: (object: T) => string,
): SubresourceDefinition<T> {
  return {
    verbs: ['get', 'update', 'patch'],
    bodyKind: { group: GROUP, version: VERSION, kind: KIND, schema: typeOfKind(GROUP, VERSION, KIND) ?? '' },
    document: {
      read: (object) => scaleOf(object as Scalable, selectorOf(object)),
      fields: { 'f:spec': { 'f:replicas': {} } },
      columns: columns.map(({ cell: _, ...shown }): TableColumn => shown),
      row: (scale, context) => columns.map(({ cell }) => cell(scale as Scale, context)),
    },
    apply(old, body, context) {
      const { replicas = 0 } = (body as Scale).spec ?? {};
      const errors = nonNegative(replicas).map((text) => invalid('spec.replicas', replicas, text));
      if (errors.length > 0) throw invalidObject({ group: GROUP, kind: KIND }, old.metadata.name, errors);
      const object: T & Scalable = structuredClone(old);
      object.spec = { ...object.spec, replicas };
      definition().prepareForUpdate?.(object, old, context);
      return object;
    },
    validate: (object, old) => definition().validateUpdate(object, old),
  };
}

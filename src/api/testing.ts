/** Functions for the tests of the kinds, which process objects as the API server does on create and update, but without a server. */
import { fieldErrorText } from '../machinery/field-error.ts';
import type { KubeObject, ObjectMeta } from '../machinery/meta.ts';
import type { Millis } from '../machinery/time.ts';
import type { KindDefinition } from './kind.ts';
import { decode } from './schema.ts';

export const NOW: Millis = Date.UTC(2026, 0, 31, 12);

export interface Written<T> {
  object: T;
  /** As clients see them. */
  errors: string[];
}

type Body = Record<string, unknown> & { metadata?: Partial<ObjectMeta> };

function decodedBody<T extends KubeObject>(kind: KindDefinition<T>, body: Body): T {
  const apiVersion = kind.group === '' ? kind.version : `${kind.group}/${kind.version}`;
  const metadata = { name: 'a', ...(kind.namespaced ? { namespace: 'default' } : {}), ...body.metadata };
  const decoded = decode(kind.schema, { apiVersion, kind: kind.kind, ...body, metadata });
  if (decoded.typeErrors.length > 0 || decoded.unknownFields.length > 0) {
    throw new Error(`bad test data: ${[...decoded.typeErrors, ...decoded.unknownFields].join(', ')}`);
  }
  const object = decoded.value as unknown as T;
  kind.defaults?.(object);
  return object;
}

export function created<T extends KubeObject>(kind: KindDefinition<T>, body: Body): Written<T> {
  const object = decodedBody(kind, body);
  kind.prepareForCreate?.(object, { now: NOW });
  return { object, errors: kind.validateCreate(object).map(fieldErrorText) };
}

const stamped = (metadata: ObjectMeta): ObjectMeta => ({ ...metadata, resourceVersion: '1', uid: 'u' });

export function updated<T extends KubeObject>(kind: KindDefinition<T>, from: Body, to: Body): Written<T> {
  const old = { ...created(kind, from).object };
  old.metadata = stamped(old.metadata);
  const object = decodedBody(kind, to);
  object.metadata = stamped(object.metadata);
  kind.prepareForUpdate?.(object, old, { now: NOW });
  return { object, errors: kind.validateUpdate(object, old).map(fieldErrorText) };
}

export const row = <T extends KubeObject>(kind: KindDefinition<T>, body: Body): (string | number)[] =>
  kind.row(decodedBody(kind, body), { now: NOW });

/** The column headings that kubectl prints, `narrow` by default, `all` with -o wide. */
export const headings = <T extends KubeObject>(kind: KindDefinition<T>): { narrow: string; all: string } => ({
  narrow: kind.columns
    .filter((column) => column.priority === 0)
    .map((column) => column.name.toUpperCase())
    .join(' | '),
  all: kind.columns.map((column) => column.name.toUpperCase()).join(' | '),
});

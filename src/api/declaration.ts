/**
 * Turns the declaration of a kind into its definition. A declaration contains only the parts that are special to the kind. This file adds
 * the parts that all kinds have in common: the names of the resource, the rules for metadata, the handling of the status, and the rows of
 * its table.
 *
 * Source: upstream's strategies (pkg/registry) call the same steps for every kind: ValidateObjectMeta, ValidateObjectMetaUpdate, and the
 * reset of the status on create and on updates of the main resource.
 */
import type { KubeObject } from '../machinery/meta.ts';
import { dns1123SubdomainErrors, type NameErrors } from '../machinery/names.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../machinery/object-meta.ts';
import { packagePath, typeOfKind } from './facts/facts.ts';
import type { KindDefinition, TableColumn, WriteContext } from './kind.ts';
import type { Rule } from './rules.ts';
import { scaleSubresource } from './scale-subresource.ts';
import { statusSubresource } from './status-subresource.ts';
import type { CellColumn } from './table.ts';

type Derived =
  | 'group'
  | 'version'
  | 'kind'
  | 'plural'
  | 'singular'
  | 'shortNames'
  | 'categories'
  | 'namespaced'
  | 'schema'
  | 'validateCreate'
  | 'validateUpdate'
  | 'subresources'
  | 'columns'
  | 'row';

export interface Declaration<T extends KubeObject>
  extends Omit<KindDefinition<T>, Derived>,
    Partial<Pick<KindDefinition<T>, Exclude<Derived, 'columns' | 'group' | 'version' | 'kind' | 'namespaced'>>> {
  /** Default: Namespaced. */
  scope?: 'Namespaced' | 'Cluster';
  /** The format of names. Default: a DNS subdomain. */
  names?: NameErrors;
  /** The rules for the fields besides the metadata. `old`: the object that is replaced; undefined on create. */
  rules?: readonly Rule<T>[];
  /** For kinds with a status that only the status subresource changes. */
  status?: {
    /** The status of a new object; `asSent`: the status in the request. Default: a new object has no status. */
    initial?: (() => unknown) | 'asSent';
    /** The rules for updates of the status, besides those for the metadata. */
    rules?: readonly Rule<T>[];
    /** Mutates `object`, the new object of an update of the status, before the validation. */
    prepare?: (object: T, old: T, context: WriteContext) => void;
  };
  /** For kinds with the subresource scale: returns the text of the selector of the object's Pods. */
  scale?: (object: T) => string;
  /** The cells may be absent if `row` computes all of them together. */
  columns: readonly (TableColumn & Partial<CellColumn<T>>)[];
}

/**
 * Returns the plural of a kind in URL paths, such as `policies` for Policy. Source: UnsafeGuessKindToResource of
 * k8s.io/apimachinery/pkg/api/meta.
 */
function pluralOf(singular: string): string {
  if (singular.endsWith('s')) return `${singular}es`;
  return singular.endsWith('y') ? `${singular.slice(0, -1)}ies` : `${singular}s`;
}

const listLines = (kind: string): string[] => [
  '... 0 meta.v1.TypeMeta',
  'metadata? 1 meta.v1.ListMeta',
  `items 2 []${kind}`,
];

const all =
  <T>(rules: readonly Rule<T>[]): Rule<T> =>
  (object, old) =>
    rules.flatMap((rule) => rule(object, old));

const metadataUpdate: Rule<KubeObject> = (object, old) =>
  old === undefined ? [] : validateObjectMetaUpdate(object.metadata, old.metadata);

/** `apiVersion`: the group and version, such as `v1` or `apps/v1`. */
export function kind<T extends KubeObject>(
  apiVersion: string,
  name: string,
  declaration: Declaration<T>,
): KindDefinition<T> {
  const { scope, names = dns1123SubdomainErrors, rules = [], status, scale, columns, types, ...given } = declaration;
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const namespaced = scope !== 'Cluster';
  const singular = name.toLowerCase();
  const check = all(rules);
  const definition: KindDefinition<T> = {
    group,
    version,
    kind: name,
    plural: pluralOf(singular),
    singular,
    shortNames: [],
    categories: [],
    namespaced,
    schema:
      (types === undefined ? typeOfKind(group, version, name) : undefined) ?? `${packagePath(group, version)}.${name}`,
    validateCreate: (object) => [
      ...validateObjectMeta(object.metadata, { namespaced, nameErrors: names }),
      ...check(object),
    ],
    validateUpdate: (object, old) => [...metadataUpdate(object, old), ...check(object, old)],
    ...(types === undefined ? {} : { types: { ...types, [`${name}List`]: listLines(name) } }),
    columns: columns.map(({ cell: _, ...column }) => column),
    row: (object, context) => columns.map(({ cell }) => cell?.(object, context) ?? ''),
    ...given,
    ...(status === undefined ? {} : withStatus(declaration, status)),
    subresources: {
      ...(status === undefined
        ? {}
        : { status: statusSubresource<T>(all<T>([metadataUpdate, ...(status.rules ?? [])]), status.prepare) }),
      ...(scale === undefined ? {} : { scale: scaleSubresource<T>(() => definition, scale) }),
      ...given.subresources,
    },
  };
  return definition;
}

/** Sets the status on create (unless `asSent`) and restores the status on update, before the functions of the declaration. */
function withStatus<T extends KubeObject & { status?: unknown }>(
  { prepareForCreate, prepareForUpdate }: Declaration<T>,
  { initial }: NonNullable<Declaration<T>['status']>,
): Pick<KindDefinition<T>, 'prepareForCreate' | 'prepareForUpdate'> {
  const setStatus = (object: T, status: unknown): void => {
    if (status === undefined) delete object.status;
    else object.status = status as T['status'];
  };
  return {
    prepareForCreate(object, context) {
      if (initial !== 'asSent') setStatus(object, initial?.());
      prepareForCreate?.(object, context);
    },
    prepareForUpdate(object, old, context) {
      setStatus(object, old.status);
      prepareForUpdate?.(object, old, context);
    },
  };
}

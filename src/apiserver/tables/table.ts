/**
 * Objects as the Table that kubectl prints: columns and cells come from the kind.
 * Source: meta/v1 Table and TableOptions of v1.33.
 */
import type { KindDefinition, WriteContext } from '../../api/kind.ts';
import { encodeOnce } from '../../machinery/encode.ts';
import type { KubeObject, ListMeta } from '../../machinery/meta.ts';
import { badRequest } from '../../machinery/status.ts';

export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** The includeObject parameter of the query. Throws 400 BadRequest. */
export function includeObjectOf(value: string | null): IncludeObject {
  if (value === null || value === '') return 'Metadata';
  if (value === 'None' || value === 'Metadata' || value === 'Object') return value;
  throw badRequest(`unrecognized includeObject value: ${JSON.stringify(value)}`);
}

interface ColumnDefinition {
  name: string;
  type: string;
  format: string;
  description: string;
  priority: number;
}

const columnDefinitions = (kind: KindDefinition): ColumnDefinition[] =>
  kind.columns.map(({ name, type, format, description, priority }) => ({
    name,
    type,
    format: format ?? '',
    description,
    priority,
  }));

export interface TableOptions {
  includeObject: IncludeObject;
  context: WriteContext;
  /** The events of a watch after the first leave the definitions out. */
  withColumns: boolean;
}

function rowText(kind: KindDefinition, object: KubeObject, options: TableOptions): string {
  const cells = JSON.stringify(kind.row(object, options.context));
  if (options.includeObject === 'None') return `{"cells":${cells},"object":null}`;
  const shown =
    options.includeObject === 'Object'
      ? encodeOnce(object)
      : JSON.stringify({ kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata });
  return `{"cells":${cells},"object":${shown}}`;
}

/** The JSON text of a Table with a row for each object, in parts: a row is made when it is asked for. */
export function* tableTexts(
  kind: KindDefinition,
  objects: readonly KubeObject[],
  metadata: ListMeta,
  options: TableOptions,
): Generator<string> {
  const columns = options.withColumns ? columnDefinitions(kind) : null;
  const head = JSON.stringify({ kind: 'Table', apiVersion: 'meta.k8s.io/v1', metadata, columnDefinitions: columns });
  yield `${head.slice(0, -1)},"rows":[`;
  for (const [index, object] of objects.entries()) yield `${index === 0 ? '' : ','}${rowText(kind, object, options)}`;
  yield ']}\n';
}

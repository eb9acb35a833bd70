/**
 * Renders objects as the Table that kubectl prints. The kind defines the columns and the cells.
 * Source: meta/v1 Table and TableOptions of v1.33.
 */
import type { KindDefinition, WriteContext } from '../../api/kind.ts';
import { encodeOnce } from '../../machinery/encode.ts';
import type { KubeObject, ListMeta } from '../../machinery/meta.ts';
import { badRequest } from '../../machinery/status.ts';
import type { Millis } from '../../machinery/time.ts';
import { eventLine, JSON_TYPE, jsonMessage, jsonRepresentation } from './json.ts';
import { partialMetadata } from './metadata.ts';
import type { Representation } from './representation.ts';

export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** Throws 400 BadRequest for an unknown value of the includeObject parameter. */
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

interface TableOptions {
  includeObject: IncludeObject;
  context: WriteContext;
  /** The events of a watch after the first event omit the column definitions. */
  withColumns: boolean;
}

function shownText(object: KubeObject, { includeObject }: TableOptions): string {
  if (includeObject === 'None') return 'null';
  if (includeObject === 'Object') return encodeOnce(object);
  return JSON.stringify(partialMetadata(object));
}

/** A row is created only when its parts are requested. The text of an object is a separate part, so that it is not copied. */
function* tableTexts(
  kind: KindDefinition,
  objects: readonly KubeObject[],
  metadata: ListMeta,
  options: TableOptions,
): Generator<string> {
  const columns = options.withColumns ? columnDefinitions(kind) : null;
  const head = JSON.stringify({ kind: 'Table', apiVersion: 'meta.k8s.io/v1', metadata, columnDefinitions: columns });
  yield `${head.slice(0, -1)},"rows":[`;
  for (const [index, object] of objects.entries()) {
    yield `${index === 0 ? '' : ','}{"cells":${JSON.stringify(kind.row(object, options.context))},"object":`;
    yield shownText(object, options);
    yield '}';
  }
  yield ']}';
}

/** Only the first Table of a watch has column definitions. Objects of other kinds are represented as JSON. */
export function tableRepresentation(
  kind: KindDefinition,
  includeObject: IncludeObject,
  now: () => Millis,
): Representation {
  const table = (objects: readonly KubeObject[], metadata: ListMeta, withColumns = true): Generator<string> =>
    tableTexts(kind, objects, metadata, { includeObject, context: { now: now() }, withColumns });
  let withColumns = true;
  return {
    contentType: JSON_TYPE,
    watchContentType: JSON_TYPE,
    object(object) {
      if (object.kind !== kind.kind) return jsonRepresentation.object(object);
      const { resourceVersion } = object.metadata;
      return lineOf(table([object as KubeObject], { resourceVersion }));
    },
    list: ({ items, metadata }) => lineOf(table(items, metadata)),
    event(event) {
      if (event.type === 'ERROR') return jsonRepresentation.event(event);
      const { resourceVersion } = event.object.metadata;
      // The object of a bookmark only carries a resourceVersion and is not a stored object, so the Table has no row.
      const rows = event.type === 'BOOKMARK' ? [] : [event.object];
      const text = [...table(rows, resourceVersion === undefined ? {} : { resourceVersion }, withColumns)].join('');
      withColumns = false;
      return eventLine(event.type, text);
    },
    message: jsonMessage,
  };
}

function* lineOf(texts: Iterable<string>): Generator<string> {
  yield* texts;
  yield '\n';
}

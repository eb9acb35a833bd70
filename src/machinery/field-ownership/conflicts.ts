/** The error for an apply that would take fields from their owners. Source: apimachinery's managedfields of v1.33 (wording). */
import type { ManagedFieldsEntry, StatusCause } from '../meta.ts';
import { ApiError } from '../status.ts';
import { type FieldSet, pathsOf, sizeOf } from './field-set.ts';

function ownerText({ manager = '', subresource, operation, apiVersion, time }: ManagedFieldsEntry): string {
  const name = JSON.stringify(manager) + (subresource ? ` with subresource ${JSON.stringify(subresource)}` : '');
  if (operation !== 'Update') return name;
  return `${name} using ${apiVersion}${time === undefined ? '' : ` at ${time}`}`;
}

/** More conflicts are counted, but not listed. */
const MAX_LISTED_CONFLICTS = 1000;

/** Throws 409 Conflict where fields are taken from their owners. */
export function refuseConflicts(taken: readonly { entry: ManagedFieldsEntry; fields: FieldSet }[]): void {
  const conflicts = taken
    .map(({ entry, fields }) => ({ owner: ownerText(entry), fields, size: sizeOf(fields) }))
    .filter(({ size }) => size > 0)
    .sort((a, b) => (a.owner < b.owner ? -1 : 1));
  const count = conflicts.reduce((sum, { size }) => sum + size, 0);
  if (count === 0) return;
  const causes: StatusCause[] = [];
  const lines: string[] = [];
  for (const { owner, fields } of conflicts) {
    const paths = pathsOf(fields, MAX_LISTED_CONFLICTS - causes.length);
    if (paths.length === 0) break;
    lines.push(`conflicts with ${owner}:`);
    for (const field of paths) {
      causes.push({ reason: 'FieldManagerConflict', message: `conflict with ${owner}`, field });
      lines.push(`- ${field}`);
    }
  }
  if (count > causes.length) lines.push(`and ${count - causes.length} more`);
  const [only] = causes;
  throw new ApiError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message:
      count === 1
        ? `Apply failed with 1 conflict: ${only?.message}: ${only?.field}`
        : `Apply failed with ${count} conflicts: ${lines.join('\n')}`,
    reason: 'Conflict',
    details: { causes },
    code: 409,
  });
}

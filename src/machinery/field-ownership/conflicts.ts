/**
 * Creates the conflict error of an apply that would change fields of other owners. Source: apimachinery's managedfields of v1.33 (wording).
 */
import { listed } from '../error-text.ts';
import type { ManagedFieldsEntry, StatusCause } from '../meta.ts';
import { ApiError } from '../status.ts';
import { type FieldSet, pathsOf, sizeOf } from './field-set.ts';

const REASON = 'FieldManagerConflict';

function ownerText({ manager = '', subresource, operation, apiVersion, time }: ManagedFieldsEntry): string {
  const name = JSON.stringify(manager) + (subresource ? ` with subresource ${JSON.stringify(subresource)}` : '');
  if (operation !== 'Update') return name;
  return `${name} using ${apiVersion}${time === undefined ? '' : ` at ${time}`}`;
}

interface Conflict {
  owner: string;
  field: string;
}

function* conflictsOf(taken: readonly { owner: string; fields: FieldSet }[]): Generator<Conflict> {
  for (const { owner, fields } of taken) for (const field of pathsOf(fields)) yield { owner, field };
}

/**
 * Throws 409 Conflict if `taken` contains fields. `taken`: for each entry of another owner, its fields that the apply would change. The
 * message states the number of all conflicts, but lists only as many as fit into a response.
 */
export function refuseConflicts(taken: readonly { entry: ManagedFieldsEntry; fields: FieldSet }[]): void {
  const count = taken.reduce((sum, { fields }) => sum + sizeOf(fields), 0);
  if (count === 0) return;
  const byOwner = taken
    .map(({ entry, fields }) => ({ owner: ownerText(entry), fields }))
    .sort((a, b) => (a.owner < b.owner ? -1 : 1));
  const shown = listed(conflictsOf(byOwner), ({ owner, field }) => REASON.length + owner.length + field.length);
  const causes = shown.map(
    ({ owner, field }): StatusCause => ({ reason: REASON, message: `conflict with ${owner}`, field }),
  );
  const lines = shown.flatMap(({ owner, field }, index) =>
    owner === shown[index - 1]?.owner ? [`- ${field}`] : [`conflicts with ${owner}:`, `- ${field}`],
  );
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

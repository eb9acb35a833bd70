/**
 * The ControllerRevision: an immutable snapshot of the state of an object, such as a DaemonSet, to which its controller can roll the object
 * back.
 * Source: pkg/registry/apps/controllerrevision, pkg/apis/apps/validation and pkg/printers of v1.33.
 */
import { type FieldError, required } from '../../../../machinery/field-error.ts';
import type { OwnerReference } from '../../../../machinery/meta.ts';
import { kind } from '../../../declaration.ts';
import type { ControllerRevision } from '../../../generated/types.ts';
import { at, immutable, nonNegative, onCreate } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';

function validateData({ data }: ControllerRevision): FieldError[] {
  if (data === undefined || data === null) return [required('data', 'data is mandatory')];
  return typeof data === 'object' && !Array.isArray(data) ? [] : [required('data', 'data must be a valid JSON object')];
}

/**
 * Returns the kind in lower case, the group and the name of the controlling owner, such as `daemonset.apps/a`; `<none>` if there is none.
 */
function ownerCell(owners: readonly OwnerReference[] | undefined): string {
  const owner = owners?.find(({ controller }) => controller === true);
  if (owner === undefined) return '<none>';
  const [, group = ''] = (owner.apiVersion ?? '').split('/').reverse();
  return `${`${owner.kind}${group === '' ? '' : `.${group}`}`.toLowerCase()}/${owner.name}`;
}

export const controllerRevisionKind = kind<ControllerRevision>('apps/v1', 'ControllerRevision', {
  rules: [at('revision', nonNegative), onCreate(validateData), immutable('data')],
  columns: [
    nameColumn,
    column('Controller', 'The object whose state this is.', ({ metadata }) => ownerCell(metadata.ownerReferences)),
    column('Revision', 'The number of the state.', ({ revision }) => revision ?? 0),
    ageColumn,
  ],
});

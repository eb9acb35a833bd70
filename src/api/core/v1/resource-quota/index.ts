/**
 * The ResourceQuota: limits on what all objects of a namespace may use together.
 * Source: pkg/registry/core/resourcequota, pkg/apis/core/validation and pkg/printers of v1.33.
 */
import { kind } from '../../../declaration.ts';
import type { ResourceQuota } from '../../../generated/types.ts';
import { onUpdate } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';
import { validateQuota, validateQuotaStatus, validateQuotaUpdate } from './validation.ts';

/** Returns `NAME: USED/HARD` for each resource whose name starts with `limits.` or, if `areLimits` is false, for each other resource. */
const amounts = ({ status }: ResourceQuota, areLimits: boolean): string =>
  Object.entries(status?.hard ?? {})
    .filter(([name]) => name.startsWith('limits.') === areLimits)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, hard]) => `${name}: ${status?.used?.[name] ?? '0'}/${hard}`)
    .join(', ');

export const resourceQuotaKind = kind<ResourceQuota>('v1', 'ResourceQuota', {
  shortNames: ['quota'],
  status: { initial: () => ({}), rules: [validateQuotaStatus] },
  rules: [validateQuota, onUpdate(validateQuotaUpdate)],
  returnsDeletedObject: true,
  columns: [
    nameColumn,
    column('Request', 'The used and allowed amounts of requests and numbers of objects.', (quota) =>
      amounts(quota, false),
    ),
    column('Limit', 'The used and allowed amounts of limits.', (quota) => amounts(quota, true)),
    ageColumn,
  ],
});

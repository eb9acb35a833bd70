/**
 * The LimitRange: bounds and defaults for the resources of the objects of a namespace.
 * Source: pkg/registry/core/limitrange, pkg/apis/core and pkg/printers of v1.33.
 */
import { kind } from '../../../declaration.ts';
import type { LimitRange, LimitRangeItem } from '../../../generated/types.ts';
import { column, nameColumn } from '../../../table.ts';
import { validateLimitRange } from './validation.ts';

function defaultItem(item: LimitRangeItem): void {
  if (item.type !== 'Container') return;
  const limits = { ...item.max, ...item.default };
  const requests = { ...item.min, ...limits, ...item.defaultRequest };
  if (Object.keys(limits).length > 0) item.default = limits;
  if (Object.keys(requests).length > 0) item.defaultRequest = requests;
}

export const limitRangeKind = kind<LimitRange>('v1', 'LimitRange', {
  shortNames: ['limits'],
  defaults({ spec }) {
    for (const item of spec?.limits ?? []) defaultItem(item);
  },
  rules: [validateLimitRange],
  columns: [
    nameColumn,
    column(
      'Created At',
      'The time at which the object was created.',
      ({ metadata }) => metadata.creationTimestamp ?? '',
    ),
  ],
});

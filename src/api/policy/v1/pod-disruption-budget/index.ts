/**
 * The PodDisruptionBudget: how many Pods of a set may be disrupted at a time.
 * Source: pkg/registry/policy/poddisruptionbudget, pkg/apis/policy/validation and pkg/printers of v1.33.
 */
import { kind } from '../../../declaration.ts';
import type { PodDisruptionBudget } from '../../../generated/types.ts';
import { countGeneration, startGeneration } from '../../../generation.ts';
import { valueAt } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';
import { validateBudget, validateBudgetStatus } from './validation.ts';

const amountCell = (budget: PodDisruptionBudget, path: string): string => String(valueAt(budget, path) ?? 'N/A');

export const podDisruptionBudgetKind = kind<PodDisruptionBudget>('policy/v1', 'PodDisruptionBudget', {
  shortNames: ['pdb'],
  status: {
    initial: () => ({ disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 }),
    rules: [validateBudgetStatus],
  },
  prepareForCreate: startGeneration,
  prepareForUpdate: (budget, old) => countGeneration(budget, old, [budget.spec, old.spec]),
  rules: [validateBudget],
  columns: [
    nameColumn,
    column('Min Available', 'The minimum number of Pods that must be available.', (budget) =>
      amountCell(budget, 'spec.minAvailable'),
    ),
    column('Max Unavailable', 'The maximum number of Pods that may be unavailable.', (budget) =>
      amountCell(budget, 'spec.maxUnavailable'),
    ),
    column(
      'Allowed Disruptions',
      'The number of Pods that may be disrupted now.',
      ({ status }) => status?.disruptionsAllowed ?? 0,
      { type: 'integer' },
    ),
    ageColumn,
  ],
});

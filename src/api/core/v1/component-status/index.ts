/**
 * The deprecated ComponentStatus: whether a component of the control plane is healthy. lifepod's components are parts of the process that
 * serves the request, so they are healthy.
 * Source: pkg/registry/core/componentstatus and pkg/printers of v1.33.
 */
import { kind } from '../../../declaration.ts';
import type { ComponentStatus } from '../../../generated/types.ts';
import { column, nameColumn } from '../../../table.ts';

const componentStatus = (name: string): ComponentStatus => ({
  apiVersion: 'v1',
  kind: 'ComponentStatus',
  metadata: { name },
  conditions: [{ type: 'Healthy', status: 'True', message: 'ok' }],
});

const healthOf = ({ conditions = [] }: ComponentStatus) => conditions.find(({ type }) => type === 'Healthy');

function statusCell(component: ComponentStatus): string {
  const health = healthOf(component);
  if (health === undefined) return 'Unknown';
  return health.status === 'True' ? 'Healthy' : 'Unhealthy';
}

export const componentStatusKind = kind<ComponentStatus>('v1', 'ComponentStatus', {
  scope: 'Cluster',
  shortNames: ['cs'],
  deprecation: 'v1 ComponentStatus is deprecated in v1.19+',
  computed: { objects: ['controller-manager', 'etcd-0', 'scheduler'].map(componentStatus) },
  columns: [
    nameColumn,
    column('Status', 'Whether the component is healthy.', statusCell),
    column('Message', 'What the component reports.', (component) => healthOf(component)?.message ?? ''),
    column('Error', 'Why the component is unhealthy.', (component) => healthOf(component)?.error ?? ''),
  ],
});

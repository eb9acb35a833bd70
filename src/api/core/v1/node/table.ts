/** The columns and cells of `kubectl get nodes`. Source: the Node printer of v1.33. */
import type { Node } from '../../../generated/types.ts';
import { ageColumn, type CellColumn, column, nameColumn } from '../../../table.ts';

const ROLE_PREFIX = 'node-role.kubernetes.io/';
const ROLE_LABEL = 'kubernetes.io/role';

function statusCell(node: Node): string {
  const ready = node.status?.conditions?.find((condition) => condition.type === 'Ready');
  const status = ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady';
  return node.spec?.unschedulable ? `${status},SchedulingDisabled` : status;
}

function rolesCell(node: Node): string {
  const roles = new Set<string>();
  for (const [label, value] of Object.entries(node.metadata.labels ?? {})) {
    if (label.startsWith(ROLE_PREFIX) && label !== ROLE_PREFIX) roles.add(label.slice(ROLE_PREFIX.length));
    else if (label === ROLE_LABEL && value !== '') roles.add(value);
  }
  return roles.size === 0 ? '<none>' : [...roles].sort().join(',');
}

const addressCell =
  (type: string) =>
  ({ status }: Node): string =>
    status?.addresses?.find((address) => address.type === type)?.address ?? '<none>';

const wide = { wide: true };

export const nodeColumns: readonly CellColumn<Node>[] = [
  nameColumn,
  column('Status', 'Whether the node is ready, and whether Pods can be scheduled on it.', statusCell),
  column('Roles', 'The roles of the node according to its labels.', rolesCell),
  ageColumn,
  column('Version', "The version of the node's agent.", ({ status }) => status?.nodeInfo?.kubeletVersion ?? ''),
  column('Internal-IP', 'The address of the node within the cluster.', addressCell('InternalIP'), wide),
  column(
    'External-IP',
    'The address at which the node can be reached from outside the cluster.',
    addressCell('ExternalIP'),
    wide,
  ),
  column('OS-Image', 'The operating system.', ({ status }) => status?.nodeInfo?.osImage || '<unknown>', wide),
  column(
    'Kernel-Version',
    'The version of the kernel.',
    ({ status }) => status?.nodeInfo?.kernelVersion || '<unknown>',
    wide,
  ),
  column(
    'Container-Runtime',
    'The container runtime and its version.',
    ({ status }) => status?.nodeInfo?.containerRuntimeVersion || '<unknown>',
    wide,
  ),
];

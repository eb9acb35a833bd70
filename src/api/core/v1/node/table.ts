/** The columns and cells of `kubectl get nodes`. Source: the Node printer of v1.33. */
import type { Node } from '../../../generated/types.ts';
import type { WriteContext } from '../../../kind.ts';
import { ageCell, ageColumn, column, nameColumn } from '../../../table.ts';

const ROLE_PREFIX = 'node-role.kubernetes.io/';
const ROLE_LABEL = 'kubernetes.io/role';

export const nodeColumns = [
  nameColumn,
  column('Status', 'Whether the node is ready, and whether Pods can be scheduled on it.'),
  column('Roles', 'The roles of the node according to its labels.'),
  ageColumn,
  column('Version', "The version of the node's agent."),
  column('Internal-IP', 'The address of the node within the cluster.', { wide: true }),
  column('External-IP', 'The address at which the node can be reached from outside the cluster.', { wide: true }),
  column('OS-Image', 'The operating system.', { wide: true }),
  column('Kernel-Version', 'The version of the kernel.', { wide: true }),
  column('Container-Runtime', 'The container runtime and its version.', { wide: true }),
];

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

const addressCell = (node: Node, type: string): string =>
  node.status?.addresses?.find((address) => address.type === type)?.address ?? '<none>';

export function nodeRow(node: Node, { now }: WriteContext): string[] {
  const info = node.status?.nodeInfo;
  return [
    node.metadata.name,
    statusCell(node),
    rolesCell(node),
    ageCell(node.metadata.creationTimestamp, now),
    info?.kubeletVersion ?? '',
    addressCell(node, 'InternalIP'),
    addressCell(node, 'ExternalIP'),
    info?.osImage || '<unknown>',
    info?.kernelVersion || '<unknown>',
    info?.containerRuntimeVersion || '<unknown>',
  ];
}

/** The columns and cells of `kubectl get pods`. Source: the Pod printer of v1.33. */
import { formatTime } from '../../../../machinery/time.ts';
import type { Pod } from '../../../generated/types.ts';
import type { TableColumn, WriteContext } from '../../../kind.ts';
import { ageCell, ageColumn, header, nameColumn } from '../../../table.ts';
import { podSummary } from './status/summary.ts';

const wide = { wide: true };

export const podColumns: readonly TableColumn[] = [
  nameColumn,
  header('Ready', 'The number of ready containers out of those that keep running.'),
  header('Status', 'The state of the Pod, or the reason why it is not running.'),
  header('Restarts', 'The number of container restarts and the time since the last one.'),
  ageColumn,
  header('IP', 'The address of the Pod.', wide),
  header('Node', 'The node that the Pod is bound to.', wide),
  header('Nominated Node', 'The node on which Pods are being preempted for this Pod.', wide),
  header(
    'Readiness Gates',
    'The number of readiness gates whose condition is true, and the number of all readiness gates.',
    wide,
  ),
];

export function podRow(pod: Pod, context: WriteContext): (string | number)[] {
  const { ready, total, status, restarts, lastRestart } = podSummary(pod);
  const since = restarts > 0 && lastRestart !== undefined ? ageCell(formatTime(lastRestart), context.now) : undefined;
  return [
    pod.metadata.name,
    `${ready}/${total}`,
    status,
    since === undefined ? `${restarts}` : `${restarts} (${since} ago)`,
    ageCell(pod.metadata.creationTimestamp, context.now),
    pod.status?.podIPs?.[0]?.ip || pod.status?.podIP || '<none>',
    pod.spec?.nodeName || '<none>',
    pod.status?.nominatedNodeName || '<none>',
    readinessGates(pod),
  ];
}

function readinessGates(pod: Pod): string {
  const gates = pod.spec?.readinessGates ?? [];
  if (gates.length === 0) return '<none>';
  const conditions = pod.status?.conditions ?? [];
  const holds = new Set(conditions.filter(({ status }) => status === 'True').map(({ type }) => type));
  const holding = gates.filter(({ conditionType }) => holds.has(conditionType));
  return `${holding.length}/${gates.length}`;
}

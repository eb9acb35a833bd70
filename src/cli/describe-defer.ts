/**
 * The defer containers of a Pod in the text of kubectl describe: each as kubectl describes an init container, and when it
 * runs; how the grace period may be extended; the Pod's termination. Pure.
 * Source: kubectl describe of v1.32 (layout and wording).
 */
import type { ContainerStatus, DeferContainer, Pod } from '../api/generated/types.ts';
import { containerLines, timeText } from './describe-container.ts';
import { tabColumns } from './tab-columns.ts';

/** Lines; none where the Pod has no defer containers. */
export function deferSection(pod: Pod): string[] {
  const { deferContainers = [] } = pod.spec ?? {};
  if (deferContainers.length === 0) return [];
  const statuses = pod.status?.deferContainerStatuses ?? [];
  const statusOf = (name: string): ContainerStatus | undefined => statuses.find((status) => status.name === name);
  const containers = deferContainers.flatMap((container) =>
    containerLines(container, statusOf(container.name), whenLines(container), pod),
  );
  return [
    ...tabColumns(['Defer Containers:', ...containers]),
    ...tabColumns(extensionLines(pod)),
    ...tabColumns(terminationLines(pod)),
  ];
}

/** The whole text of kubectl with the section in it, after the app containers. */
export function insertDeferSection(text: string, section: readonly string[]): string {
  const lines = text.split('\n');
  const containers = lines.indexOf('Containers:');
  const next = lines.findIndex((line, index) => index > containers && /^\S/.test(line));
  if (section.length === 0 || containers < 0 || next < 0) return text;
  return [...lines.slice(0, next), ...section, ...lines.slice(next)].join('\n');
}

function whenLines({ trigger = 'PreExit', restartPolicy = 'Never', timeoutSeconds }: DeferContainer): string[] {
  const timeout = timeoutSeconds === undefined ? '<none>' : `${timeoutSeconds}s`;
  return [`    Trigger:\t${trigger}`, `    Restart Policy:\t${restartPolicy}`, `    Timeout:\t${timeout}`];
}

function extensionLines({ spec }: Pod): string[] {
  const interval = spec?.deferContainerGracePeriodExtensionInterval;
  const count = spec?.deferContainerGracePeriodExtensionCount;
  if (interval !== undefined && count !== undefined) {
    return [`Grace Period Extension:\t${interval}s, at most ${count} times`];
  }
  if (spec?.deferContainerGracePeriodExtension === true) {
    return ['Grace Period Extension:\tby each success of a liveness probe'];
  }
  return [];
}

function terminationLines({ status }: Pod): string[] {
  const { termination } = status ?? {};
  if (termination === undefined) return [];
  const { reason, startedAt, deadline, extendedSeconds } = termination;
  return [
    'Termination:',
    `  Reason:\t${reason}`,
    `  Started:\t${timeText(startedAt)}`,
    `  Deadline:\t${timeText(deadline)}`,
    ...(extendedSeconds === undefined ? [] : [`  Extended:\t${extendedSeconds}s`]),
  ];
}

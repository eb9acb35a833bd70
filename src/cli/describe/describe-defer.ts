/**
 * Describes the defer containers of a Pod in the style of kubectl describe: each like an init container, with the conditions under which it
 * runs. Pure, except for the time zone.
 * Source: kubectl describe of v1.32 (layout and wording).
 */
import {
  effectiveLimits,
  effectiveRequests,
  type ResourceQuantities,
  resourceTexts,
} from '../../api/core/v1/pod/resources.ts';
import type { DeferContainer, Pod } from '../../api/generated/types.ts';
import { imageOf } from '../pod-containers.ts';
import { containerLines, timeText } from './describe-container.ts';
import { tabColumns } from './tab-columns.ts';

export function deferSection(pod: Pod): string[] {
  const { deferContainers = [] } = pod.spec ?? {};
  if (deferContainers.length === 0) return [];
  const statuses = pod.status?.deferContainerStatuses ?? [];
  const containers = deferContainers.flatMap((entry) => {
    const status = statuses.find(({ name }) => name === entry.name);
    const image = entry.imageFrom === undefined ? entry.image : imageOf(pod, entry);
    return containerLines({ ...entry, image }, status, whenLines(entry), pod);
  });
  return [
    ...tabColumns(['Defer Containers:', ...containers]),
    ...tabColumns([...resourceLines(pod), ...graceLines(pod)]),
    ...tabColumns(terminationLines(pod)),
  ];
}

/** Inserts the section after the app containers in the output of kubectl describe. */
export function insertDeferSection(text: string, section: readonly string[]): string {
  const lines = text.split('\n');
  const containers = lines.indexOf('Containers:');
  const next = lines.findIndex((line, index) => index > containers && /^\S/.test(line));
  if (section.length === 0 || containers < 0 || next < 0) return text;
  return [...lines.slice(0, next), ...section, ...lines.slice(next)].join('\n');
}

function whenLines(entry: DeferContainer): string[] {
  const { imageFrom, trigger = 'PreExit', restartPolicy = 'Never', timeoutSeconds, onReasons } = entry;
  const { when = 'Always', failurePolicy = 'Ignore' } = entry;
  const timeout = timeoutSeconds === undefined ? '<none>' : `${timeoutSeconds}s`;
  return [
    ...(imageFrom === undefined ? [] : [`    Image From:\t${imageFrom}`]),
    `    Trigger:\t${trigger}`,
    `    Restart Policy:\t${restartPolicy}`,
    `    Timeout:\t${timeout}`,
    ...(onReasons === undefined ? [] : [`    On Reasons:\t${onReasons.join(', ') || '<none>'}`]),
    ...(when === 'Always' ? [] : [`    When:\t${when}`]),
    ...(failurePolicy === 'Ignore' ? [] : [`    Failure Policy:\t${failurePolicy}`]),
  ];
}

function resourceLines(pod: Pod): string[] {
  const text = (quantities: ResourceQuantities): string =>
    Object.entries(resourceTexts(quantities))
      .map(([name, quantity]) => `${name}=${quantity}`)
      .join(', ') || '<none>';
  return [`Effective Requests:\t${text(effectiveRequests(pod))}`, `Effective Limits:\t${text(effectiveLimits(pod))}`];
}

function graceLines({ spec }: Pod): string[] {
  const { preStopPolicy = 'Concurrent', deferContainerGracePeriodExtension: byProbe } = spec ?? {};
  const interval = spec?.deferContainerGracePeriodExtensionInterval;
  const count = spec?.deferContainerGracePeriodExtensionCount;
  const extension =
    interval !== undefined && count !== undefined
      ? `${interval}s, at most ${count} times`
      : byProbe === true
        ? 'while the liveness probe of the running entry succeeds'
        : undefined;
  return [
    ...(preStopPolicy === 'Concurrent' ? [] : [`Pre Stop Policy:\t${preStopPolicy}`]),
    ...reserveLines(spec),
    ...(extension === undefined ? [] : [`Grace Period Extension:\t${extension}`]),
  ];
}

/**
 * The default time depends on the reason for the termination and on the timeouts of the entries, so only its upper limit is shown: half of
 * the grace period.
 */
function reserveLines(spec: Pod['spec']): string[] {
  const reserved = spec?.postExitGracePeriodSeconds;
  if (reserved !== undefined) return [`Post Exit Grace Period:\t${reserved}s`];
  if (!spec?.deferContainers?.some(({ trigger }) => trigger === 'PostExit')) return [];
  return [`Post Exit Grace Period:\tat most ${(spec.terminationGracePeriodSeconds ?? 30) / 2}s (default)`];
}

function terminationLines({ status }: Pod): string[] {
  const { termination } = status ?? {};
  if (termination === undefined) return [];
  const { reason, startedAt, preExitDeadline, deadline, extendedSeconds, outageSeconds, turn, skip = [] } = termination;
  // The field `turn` still names the last entry after it has ended.
  const isOver = status?.deferContainerStatuses?.some(
    ({ name, state }) => name === turn?.entry && state?.terminated !== undefined,
  );
  return [
    'Termination:',
    `  Reason:\t${reason}`,
    `  Started:\t${timeText(startedAt)}`,
    ...(preExitDeadline === undefined ? [] : [`  PreExit Deadline:\t${timeText(preExitDeadline)}`]),
    `  Deadline:\t${timeText(deadline)}`,
    ...(extendedSeconds ? [`  Extended:\t${extendedSeconds}s`] : []),
    ...(outageSeconds ? [`  Outage:\t${Math.round(outageSeconds)}s, not counted`] : []),
    ...(turn === undefined || isOver ? [] : [`  Turn:\t${turn.entry}, since ${timeText(turn.since)}`]),
    ...(skip.length === 0 ? [] : [`  Given Up:\t${skip.join(', ')}`]),
  ];
}

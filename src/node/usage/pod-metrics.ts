import type { Namespace, Pod } from '../../api/generated/types.ts';
import { NAMESPACES, PODS } from '../../api/resources.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Millis } from '../../machinery/time.ts';
import { family, type MetricFamily, type Metrics } from '../../platform/metrics.ts';
import type { Clock, Platform } from '../../platform/platform.ts';

const BUCKETS_SECONDS = [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300];
const LIST_BUCKETS_SECONDS = [0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600];
const PHASES = ['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'];

export interface PodMetricsOptions extends Platform {
  informers: SharedInformers;
  nodeName: string;
  metrics: Metrics;
  signal: AbortSignal;
}

export function startPodMetrics({ informers, nodeName, metrics, timers, signal }: PodMetricsOptions): void {
  const starts = metrics.histogram(
    'lifepod_pod_start_duration_seconds',
    'Time from when a Pod was bound to the node until it was Ready for the first time, in seconds.',
    [],
    BUCKETS_SECONDS,
  );
  const restarts = metrics.counter('lifepod_container_restarts_total', 'Restarts of containers.', ['namespace']);
  const countList = deferMetrics(metrics, timers);
  /** When a Pod that has not been Ready yet was first seen, by UID. Omits Pods that were first seen after their start. */
  const seenAt = new Map<string, Millis>();
  const look = (pod: Pod): void => {
    const uid = uidOf(pod);
    const seen = seenAt.get(uid);
    if (seen === undefined || !isReady(pod)) return;
    starts.observe((timers.now() - seen) / 1000);
    seenAt.delete(uid);
  };
  const namespaces = informers.follow<Namespace>(
    NAMESPACES,
    { signal },
    { deleted: ({ metadata }) => restarts.remove(metadata.name) },
  );
  const pods = informers.follow<Pod>(
    PODS,
    { fieldSelector: `spec.nodeName=${nodeName}`, signal },
    {
      added(pod) {
        // A Pod with a startTime was first seen after its start, usually because a previous engine started it, so the duration of its start
        // is unknown.
        if (pod.status?.startTime === undefined) seenAt.set(uidOf(pod), timers.now());
        look(pod);
      },
      updated(pod, old) {
        look(pod);
        if (pod.metadata.uid !== old.metadata.uid) return;
        if (deferIsOver(pod) && !deferIsOver(old)) countList(pod);
        const more = restartsOf(pod) - restartsOf(old);
        const { namespace = '' } = pod.metadata;
        // Events of the two watches can arrive in any order: the namespace of this Pod may already be deleted.
        if (more > 0 && namespaces.get(undefined, namespace) !== undefined) restarts.add(more, namespace);
      },
      deleted: (pod) => void seenAt.delete(uidOf(pod)),
    },
  );
  metrics.source(() => [podCounts(pods.list())]);
}

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false;

const restartsOf = ({ status }: Pod): number =>
  [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].reduce(
    (sum, { restartCount }) => sum + restartCount,
    0,
  );

const deferIsOver = ({ status }: Pod): boolean => {
  const condition = status?.conditions?.find(({ type }) => type === 'Deferred');
  return condition !== undefined && condition.reason !== 'DeferContainersRunning';
};

/** The returned function is called when a Pod's list of defer containers has ended. */
function deferMetrics(metrics: Metrics, timers: Clock): (pod: Pod) => void {
  const lists = metrics.counter(
    'lifepod_defer_lists_total',
    'Lists of defer containers that have ended, and of which at least one entry has run.',
    [],
  );
  const entries = metrics.counter(
    'lifepod_defer_entries_total',
    'Defer containers of lists that have ended, by outcome.',
    ['outcome'],
  );
  const durations = metrics.histogram(
    'lifepod_defer_list_duration_seconds',
    'Time from the start of the termination of a Pod until its list of defer containers has ended, in seconds.',
    [],
    LIST_BUCKETS_SECONDS,
  );
  return ({ status }) => {
    const outcomes = (status?.deferContainerStatuses ?? []).map(({ state }) => state?.terminated?.reason ?? 'Unknown');
    for (const outcome of outcomes) entries.add(1, outcome);
    if (outcomes.every((outcome) => outcome === 'Skipped')) return;
    lists.add(1);
    const startedAt = Date.parse(status?.termination?.startedAt ?? '');
    if (!Number.isNaN(startedAt)) durations.observe(Math.max(0, timers.now() - startedAt) / 1000);
  };
}

export function podCounts(pods: readonly Pod[]): MetricFamily {
  const counts = new Map(PHASES.map((phase) => [phase, 0]));
  for (const { status } of pods) {
    const phase = status?.phase ?? 'Pending';
    counts.set(phase, (counts.get(phase) ?? 0) + 1);
  }
  const samples = [...counts].map(([phase, value]) => ({ labels: { phase }, value }));
  return family('gauge', 'lifepod_pods', 'Pods of the node by phase.', samples);
}

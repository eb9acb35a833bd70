/** Sources: Init Containers and Pod Lifecycle (v1.33). */
import { advance, lookForImages, prePullDeferImages } from './container-steps.ts';
import { act, type Rule } from './effects.ts';
import { isStarted } from './probes.ts';
import { hasEndedForGood, lastRun } from './restart.ts';
import { replaceSandbox } from './termination-waves.ts';
import { type ContainerView, diedAtStart, isLive, type PodView, succeeded } from './view.ts';

/** failedInit: the init container that has failed for good. Without failedInit, the app containers have ended for good. */
export type Finished = { failedInit?: string };

/** preparing: no sandbox is ready. initializing: the index of the init container that has its turn. */
export type Progress = 'preparing' | { initializing: number } | 'running';

/**
 * An init container with a run proves that the earlier init containers have had their turn, even if the runtime no longer has their runs.
 * Source: the kubelet of v1.33 (behavior).
 */
export function progressOf(view: PodView): Progress {
  if (view.sandbox?.ready !== true) return 'preparing';
  if (view.initialized) return 'running';
  const reached = view.init.findLastIndex(({ current }) => current !== undefined);
  const isPast = (container: ContainerView): boolean =>
    container.sidecar ? isStarted(view, container) : succeeded(container.current);
  const turn = view.init.findIndex((container, index) => index >= reached && !isPast(container));
  return turn < 0 ? 'running' : { initializing: turn };
}

/** How many sandboxes that ended at their start are kept, because the back-off counts them. With more, the back-off does not grow. */
const DEAD_KEPT = 5;

export function* advancePod(view: PodView): Rule {
  if (view.observed.volumes !== 'mounted') yield act({ kind: 'mountVolumes' });
  const progress = progressOf(view);
  const dead = diedAtStart(view);
  for (const { id, stopped } of dead.slice(DEAD_KEPT)) if (stopped) yield act({ kind: 'removeSandbox', id });
  if (progress === 'preparing') {
    yield* replaceSandbox(view);
    return yield* lookForImages(view, 0);
  }
  // A sandbox is removed together with its runs, of which the latest ones and the runs of the previous sandbox are needed.
  const attempt = view.sandbox?.attempt ?? 0;
  const isNeeded = (id: string): boolean => view.all.some(({ latest }) => latest?.sandboxId === id);
  for (const old of view.observed.sandboxes)
    if (old.attempt < attempt - 1 && !dead.includes(old) && !isNeeded(old.id))
      yield act({ kind: 'removeSandbox', id: old.id });

  const turn = progress === 'running' ? view.init.length : progress.initializing;
  const sidecars = view.init.slice(0, turn).filter(({ sidecar }) => sidecar);
  const next = view.init[turn];
  for (const container of [...sidecars, ...view.ephemeral, ...(next === undefined ? view.apps : [next])])
    yield* advance(view, container);
  if (next === undefined) yield* prePullDeferImages(view);
  else if (isLive(next.current)) yield* lookForImages(view, turn + 1);
}

/** Returns undefined if the Pod has not finished. Sidecars may still run. */
export function finishedForGood(view: PodView): Finished | undefined {
  const hasFailed = (run: ReturnType<typeof lastRun>): boolean => run?.state === 'exited' && run.exitCode !== 0;
  const failed = view.init.find((container) => !container.sidecar && hasFailed(lastRun(container)));
  if (failed !== undefined && view.restartPolicy === 'Never') return { failedInit: failed.name };
  return view.apps.every((container) => hasEndedForGood(view, container)) ? {} : undefined;
}

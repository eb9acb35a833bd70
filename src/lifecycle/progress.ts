/**
 * The life of a Pod that does not end: sandbox and volumes, then init containers in order, then all app containers together.
 * Sources: Init Containers and Pod Lifecycle (v1.33); seeds 000 to 002 and 004.
 */
import { advance, hasEndedForGood, lookForImages, prePullDeferImages } from './containers.ts';
import { act, type Rule } from './effects.ts';
import { replaceSandbox } from './ending.ts';
import { isStarted } from './probes.ts';
import { type ContainerView, isLive, type PodView, succeeded } from './view.ts';

/** No container of the Pod runs and the restart policy starts none again. */
export type Finished = { failedInit?: string };

/** Where a living Pod is. `initializing`: the index of the init container whose turn it is. */
export type Progress = 'preparing' | { initializing: number } | 'running';

/**
 * Each init container must succeed (a sidecar: have started) before the next: those before one that has a run have had their turn,
 * whether or not the runtime still knows them. Source: the kubelet of v1.33 (behaviour).
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

export function* advancePod(view: PodView): Rule {
  if (view.observed.volumes !== 'mounted') yield act({ kind: 'mountVolumes' });
  const progress = progressOf(view);
  if (progress === 'preparing') {
    yield* replaceSandbox(view);
    return yield* lookForImages(view, 0);
  }
  // The sandbox before the current one keeps the logs of the runs that it lost.
  const attempt = view.sandbox?.attempt ?? 0;
  for (const old of view.observed.sandboxes)
    if (old.attempt < attempt - 1) yield act({ kind: 'removeSandbox', id: old.id });

  const turn = progress === 'running' ? view.init.length : progress.initializing;
  const sidecars = view.init.slice(0, turn).filter(({ sidecar }) => sidecar);
  const next = view.init[turn];
  for (const container of [...sidecars, ...view.ephemeral, ...(next === undefined ? view.apps : [next])])
    yield* advance(view, container);
  if (next === undefined) yield* prePullDeferImages(view);
  else if (isLive(next.current)) yield* lookForImages(view, turn + 1);
}

/** Sidecars do not count. */
export function finishedForGood(view: PodView): Finished | undefined {
  const failed = view.init.find(({ sidecar, latest }) => !sidecar && latest?.state === 'exited' && !succeeded(latest));
  if (failed !== undefined && view.restartPolicy === 'Never') return { failedInit: failed.name };
  return view.apps.every((container) => hasEndedForGood(view, container)) ? {} : undefined;
}

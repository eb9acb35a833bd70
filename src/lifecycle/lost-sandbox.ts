/**
 * A sandbox that is lost: its pause process is gone, or its network. The Pod starts over in a new one, once what runs on in the old
 * one has ended as in a Pod that ends: preStop hooks, stop signals, sidecars after the others, the whole grace period.
 *
 * Source: killPod of v1.33's kubelet (behaviour), for a Pod whose sandbox has changed.
 */
import { killTime } from './defer.ts';
import { endRun, MINIMUM_GRACE_SECONDS, runPreStopHook } from './hooks.ts';
import { graceMillis, type Turn } from './turn.ts';
import type { ContainerState, Termination } from './types.ts';
import { isRunning } from './view.ts';

/** `termination`: of a Pod that ends meanwhile, and whose defer containers need a sandbox; it leaves no more time than it has. */
export function replaceSandbox(turn: Turn, termination?: Termination): void {
  const { view, plan } = turn;
  const remains = view.observed.containers.filter(isRunning);
  endRemains(turn, remains, termination);
  if (remains.length > 0) return;
  // Its address and host ports are to be free before the next one asks for them.
  const unstopped = view.observed.sandboxes.filter((sandbox) => !sandbox.stopped);
  for (const sandbox of unstopped) plan.act({ kind: 'stopSandbox', id: sandbox.id });
  if (unstopped.length > 0) return;
  plan.act({ kind: 'createSandbox', attempt: (view.sandbox?.attempt ?? -1) + 1 });
}

function endRemains(turn: Turn, remains: readonly ContainerState[], termination: Termination | undefined): void {
  const { view, plan, now, stops } = turn;
  const sidecars = view.init.filter(({ sidecar }) => sidecar);
  const ofSidecar = (run: ContainerState) => sidecars.find(({ spec }) => spec.name === run.name);
  const lastSidecar = remains.every(ofSidecar) ? sidecars.findLast(({ latest }) => isRunning(latest)) : undefined;
  for (const run of remains) {
    if (run.state === 'unknown') {
      plan.act({ kind: 'stopContainer', id: run.id, deadline: run.createdAt });
      continue;
    }
    // An entry that is to run again must not take the time of the list.
    const millis = run.kind === 'defer' ? MINIMUM_GRACE_SECONDS * 1000 : graceMillis(view);
    const restart = termination === undefined && view.restartPolicy !== 'Never';
    stops[run.id] ??= { at: now, deadline: now + millis, restart };
    const own = (stops[run.id] as (typeof stops)[string]).deadline;
    const deadline = Math.min(own, termination?.deadline ?? own);
    const killAt = termination === undefined ? undefined : Math.min(own, killTime(termination));
    plan.wake(deadline);
    const sidecar = ofSidecar(run);
    if (sidecar === undefined || sidecar === lastSidecar || now >= deadline)
      endRun(
        turn,
        run,
        view.all.find(({ spec }) => spec.name === run.name),
        deadline,
        killAt,
      );
    else runPreStopHook(turn, run, sidecar, deadline);
  }
}

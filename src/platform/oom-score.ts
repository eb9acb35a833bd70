/**
 * oom_score_adj: whom the kernel ends when memory runs out, from 1000 (first) to -1000 (never). Children inherit it.
 * Boundary: /proc. Processes lower theirs with CAP_SYS_RESOURCE alone; without it down to what they were given at most.
 */
import { readFileSync, writeFileSync } from 'node:fs';

/** Of the kubelet and containerd in Kubernetes, too: whatever runs in Pods goes before. */
export const ENGINE_OOM_SCORE = -999;
/** containerd starts its shims with one more than its own: they go before it does, and no container before its shim. */
export const SHIM_OOM_SCORE = ENGINE_OOM_SCORE + 1;

/** What processes have that nobody has given another; as low as those without the right to -999 may often go. */
const KERNEL_DEFAULT = 0;

/** Undefined where the process is gone. */
export function oomScore(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Lowers the score as far as the rights of this process allow; never raises it, never fails. */
export function lowerOomScore(pid: number, wanted: number): void {
  for (const score of [wanted, KERNEL_DEFAULT]) {
    if ((oomScore(pid) ?? score) <= score) return;
    try {
      writeFileSync(`/proc/${pid}/oom_score_adj`, String(score));
      return;
    } catch {
      // Not allowed, or the process is gone. `lifepod status` shows what the scores are.
    }
  }
}

/**
 * When memory runs out, the kernel prefers to kill processes with a high oom_score_adj, from 1000 (killed first) to -1000 (never killed).
 * Child processes inherit the score. Without CAP_SYS_RESOURCE, a process cannot lower a score below the score that a process with this
 * capability set last.
 */
import { readFileSync, writeFileSync } from 'node:fs';

/** The score of the kubelet and containerd in Kubernetes. Processes in Pods have higher scores, so the kernel kills them first. */
export const ENGINE_OOM_SCORE = -999;
/** containerd gives its shims its own score plus 1, so the kernel kills them before containerd, and after the containers. */
export const SHIM_OOM_SCORE = ENGINE_OOM_SCORE + 1;

/** Often the lowest score that a process without CAP_SYS_RESOURCE may set. */
const KERNEL_DEFAULT = 0;

/** Returns undefined if the score cannot be read, usually because the process has exited. */
export function oomScore(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Lowers the score to `wanted` or, if this is not permitted, to the kernel's default. Never raises the score and never throws. */
export function lowerOomScore(pid: number, wanted: number): void {
  for (const score of [wanted, KERNEL_DEFAULT]) {
    if ((oomScore(pid) ?? score) <= score) return;
    try {
      writeFileSync(`/proc/${pid}/oom_score_adj`, String(score));
      return;
    } catch {
      // The kernel does not permit the score, or the process has exited. `lifepod status` warns about scores that are too high.
    }
  }
}

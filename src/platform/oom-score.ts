/**
 * oom_score_adj: which processes the kernel kills when memory runs out, from 1000 (first) to -1000 (never). Children inherit it.
 * Boundary: /proc. Without CAP_SYS_RESOURCE a process cannot lower its score below the one that it was given.
 */
import { readFileSync, writeFileSync } from 'node:fs';

/** The score of the kubelet and containerd in Kubernetes: processes in Pods are killed first. */
export const ENGINE_OOM_SCORE = -999;
/** containerd starts its shims with one more than its own score: they are killed before containerd, and after the containers. */
export const SHIM_OOM_SCORE = ENGINE_OOM_SCORE + 1;

/** The default of the kernel; often the lowest score allowed to a process without CAP_SYS_RESOURCE. */
const KERNEL_DEFAULT = 0;

/** Undefined if the process has exited. */
export function oomScore(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Lowers the score as far as this process is permitted to; never raises it and never throws. */
export function lowerOomScore(pid: number, wanted: number): void {
  for (const score of [wanted, KERNEL_DEFAULT]) {
    if ((oomScore(pid) ?? score) <= score) return;
    try {
      writeFileSync(`/proc/${pid}/oom_score_adj`, String(score));
      return;
    } catch {
      // Not permitted, or the process has exited. `lifepod status` warns about scores that are too high.
    }
  }
}

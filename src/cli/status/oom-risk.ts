/** Warns in `lifepod status` if the kernel may kill lifepod before Pods when memory runs out. */
import { oomScore, SHIM_OOM_SCORE } from '../../platform/oom-score.ts';

/** The oom_score_adj of processes; undefined for a process that has exited. */
export interface OomScores {
  engine: number | undefined;
  containerd: readonly (number | undefined)[];
  shims: readonly (number | undefined)[];
}

export const readOomScores = (engine: number, containerd: readonly number[], shims: readonly number[]): OomScores => ({
  engine: oomScore(engine),
  containerd: containerd.map(oomScore),
  shims: shims.map(oomScore),
});

/** Returns a warning of one sentence, or undefined if all scores are low enough. Processes that have exited are ignored. */
export function oomRisk({ engine, containerd, shims }: OomScores): string | undefined {
  const parts: string[] = [];
  const name = (what: string, scores: readonly (number | undefined)[]): void => {
    const high = scores.filter((score): score is number => score !== undefined && score > SHIM_OOM_SCORE);
    if (high.length > 0) parts.push(`${what} ${Math.max(...high)}`);
  };
  name('engine', [engine]);
  name('containerd', containerd);
  name('shims', shims);
  if (parts.length === 0) return undefined;
  return (
    `when memory runs out, the kernel may kill lifepod before Pods (oom_score_adj: ${parts.join(', ')}): ` +
    "start lifepod again with CAP_SYS_RESOURCE: in a container with 'docker run --cap-add SYS_RESOURCE', as a service with " +
    "'OOMScoreAdjust=-999' in its unit"
  );
}

/** Warns in `lifepod status` if the kernel may kill lifepod before Pods when memory runs out. */
import { oomScore, SHIM_OOM_SCORE } from '../../platform/oom-score.ts';
import { asRoot, needsSudo } from '../../platform/programs/typed-program.ts';

/** The values of oom_score_adj; undefined for a process that has exited. */
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

/** Returns a warning of one sentence; undefined if all scores are low enough. `isService`: whether systemd runs the engine. */
export function oomRisk(
  { engine, containerd, shims }: OomScores,
  isService: boolean,
  env: NodeJS.ProcessEnv = process.env,
): string | undefined {
  const parts: string[] = [];
  const name = (what: string, scores: readonly (number | undefined)[]): void => {
    const high = scores.filter((score): score is number => score !== undefined && score > SHIM_OOM_SCORE);
    if (high.length > 0) parts.push(`${what} ${Math.max(...high)}`);
  };
  name('engine', [engine]);
  name('containerd', containerd);
  name('shims', shims);
  if (parts.length === 0) return undefined;
  // An engine with a low score was able to lower scores. After a restart, it lowers those of shims of the earlier engine, too.
  const isLow = engine === undefined || engine <= SHIM_OOM_SCORE;
  const advice = isLow ? restart(isService, env) : isService ? OF_SERVICE : ofShell(needsSudo(env));
  return `when memory runs out, the kernel may kill lifepod before Pods (oom_score_adj: ${parts.join(', ')}): ${advice}`;
}

const restart = (isService: boolean, env: NodeJS.ProcessEnv): string =>
  isService
    ? `'${asRoot('systemctl restart lifepod', env)}' lowers the scores, and leaves the Pods running`
    : 'stop lifepod and start it again, which lowers the scores';

const OF_SERVICE =
  "systemd has not applied OOMScoreAdjust=-999 of the unit: 'systemctl cat lifepod' shows whether a drop-in replaces it; if not, root lacks " +
  'CAP_SYS_RESOURCE on this machine, which is probably a container';

const ofShell = (sudo: boolean): string =>
  `root lacks CAP_SYS_RESOURCE where lifepod was started${sudo ? ', also with sudo' : ''}; if that is a container, start it again with ` +
  "'docker run --cap-add SYS_RESOURCE', else start lifepod from a shell that has it";

import { expect, test } from 'vitest';
import { oomRisk } from './oom-risk.ts';

test.each([
  ['all scores are low', { engine: -999, containerd: [-999], shims: [-998, -998] }, undefined],
  ['the supervisor has set -1000', { engine: -1000, containerd: [-1000], shims: [-999] }, undefined],
  ['a process has ended', { engine: -999, containerd: [-999], shims: [undefined] }, undefined],
  ["the runtime is not lifepod's", { engine: 0, containerd: [], shims: [] }, 'engine 0'],
  ['no score could be lowered', { engine: 0, containerd: [0], shims: [1, 300] }, 'engine 0, containerd 0, shims 300'],
  ['the score of one shim is high', { engine: -999, containerd: [-999], shims: [-998, 1] }, 'shims 1'],
])('the OOM risk names only the high scores when %s', (_, scores, named) => {
  const start = `when memory runs out, the kernel may kill lifepod before Pods (oom_score_adj: ${named}): `;
  const isLow = (scores.engine ?? 0) <= -998;
  const ofShell = (sudo: string): string =>
    `root lacks CAP_SYS_RESOURCE where lifepod was started${sudo}; if that is a container, start it again with ` +
    "'docker run --cap-add SYS_RESOURCE', else start lifepod from a shell that has it";
  for (const [env, sudo] of [
    [{}, process.geteuid?.() === 0 ? '' : ', also with sudo'],
    [{ SUDO_UID: '1000' }, ', also with sudo'],
  ] as const)
    expect(oomRisk(scores, false, env)).toBe(
      named && `${start}${isLow ? 'stop lifepod and start it again, which lowers the scores' : ofShell(sudo)}`,
    );
  expect(oomRisk(scores, true, { SUDO_UID: '1000' })).toBe(
    named &&
      `${start}${
        isLow
          ? "'sudo systemctl restart lifepod' lowers the scores, and leaves the Pods running"
          : "systemd has not applied OOMScoreAdjust=-999 of the unit: 'systemctl cat lifepod' shows whether a drop-in replaces it; if not, " +
            'root lacks CAP_SYS_RESOURCE on this machine, which is probably a container'
      }`,
  );
});

import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import type { ContainerStatus, Pod } from '../../api/generated/types.ts';
import { openCgroups } from '../../platform/control-groups/cgroups.ts';
import { silentLog } from '../../platform/silent-log.ts';
import type { ContainerObservation } from '../../runtime/runtime.ts';
import { createOomReader, settleKills } from './oom-kills.ts';

function run(
  id: string,
  exitCode: number | undefined,
  about: Partial<ContainerObservation> = {},
): ContainerObservation {
  const ended = { state: 'exited', reason: exitCode === 0 ? 'Completed' : 'Error', finishedAt: 0 } as const;
  return {
    id,
    sandboxId: 's',
    podUid: 'u',
    name: 'app',
    kind: 'app',
    attempt: 0,
    createdAt: 0,
    image: 'x',
    imageId: 'x',
    ...(exitCode === undefined ? { state: 'running' } : { ...ended, exitCode }),
    annotations: {},
    ...about,
  };
}
const reported = (id: string): ContainerObservation => run(id, 137, { reason: 'OOMKilled' });

describe('settleKills()', () => {
  test.each([
    ['a run with SIGKILL and one kill', 0, [run('a', 137)], 1, ['a'], 1],
    ['a run with SIGKILL and no kill', 0, [run('a', 137)], 0, [], 0],
    ['a run with SIGKILL and a kill that is already accounted for', 1, [run('a', 137)], 1, [], 1],
    ['a run with SIGKILL and a second kill', 1, [run('a', 137)], 2, ['a'], 2],
    ['a run with another exit code', 0, [run('a', 1)], 1, [], 0],
    ['a run that failed to start', 0, [run('a', 128, { reason: 'StartError' })], 1, [], 1],
    ['a run that failed to start, without a kill', 1, [run('a', 128, { reason: 'StartError' })], 1, [], 1],
    ['a running run', 0, [run('a', undefined)], 1, [], 0],
    ['a run that the runtime reports as OOMKilled', 0, [reported('a')], 1, [], 1],
    ['a reported run without a new kill', 1, [reported('a')], 1, [], 1],
    ['two runs and one kill, which is reported', 0, [run('a', 137), reported('b')], 1, [], 1],
    ['two runs and two kills, one of them reported', 0, [run('a', 137), reported('b')], 2, ['a'], 2],
    ['two runs and two kills', 0, [run('a', 137), run('b', 137)], 2, ['a', 'b'], 2],
    ['two kills and two runs, one still running', 0, [run('a', 137), run('b', undefined)], 2, ['a'], 1],
    [
      'one kill and two runs, of which the first to end is chosen',
      0,
      [run('b', 137, { finishedAt: 2 }), run('a', 137, { finishedAt: 1 })],
      1,
      ['a'],
      1,
    ],
  ] as const)(
    'settleKills() accounts for kills counted by groups: %s',
    (_, accounted, ended, count, killed, settled) => {
      const account = { groupId: '7', accounted, killed: [] };
      expect(settleKills(account, ended, { groupId: '7', count, unit: 'group' })).toEqual({
        groupId: '7',
        accounted: settled,
        killed,
      });
    },
  );

  test.each([
    ['a run with three killed processes', 0, [run('a', 137)], 3, ['a'], 3],
    ['a run and kills that are already accounted for', 3, [run('a', 137)], 3, [], 3],
    ['a run with SIGKILL and a reported run', 0, [run('a', 137), reported('b')], 3, [], 3],
    ['a run with another exit code', 0, [run('a', 0)], 3, [], 0],
  ] as const)(
    'settleKills() accounts for kills counted by processes: %s',
    (_, accounted, ended, count, killed, settled) => {
      const account = { groupId: '7', accounted, killed: [] };
      expect(settleKills(account, ended, { groupId: '7', count, unit: 'process' })).toEqual({
        groupId: '7',
        accounted: settled,
        killed,
      });
    },
  );

  it('settleKills() counts from zero in a new group, and keeps the verdicts of the old group', () => {
    const account = { groupId: '7', accounted: 2, killed: ['a'] };
    const after = { groupId: '8', accounted: 1, killed: ['a', 'b'] };
    expect(settleKills(account, [run('b', 137)], { groupId: '8', count: 1, unit: 'group' })).toEqual(after);
    // After a reboot, a new group may have the ID of an earlier group, and counts from zero again.
    expect(settleKills(account, [run('b', 137)], { groupId: '7', count: 1, unit: 'group' })).toEqual({
      ...after,
      groupId: '7',
    });
  });
});

describe('createOomReader()', () => {
  let root: string;
  let podDirectory: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'lifepod-oom-'));
    podDirectory = join(root, 'u');
    mkdirSync(podDirectory);
    mkdirSync(join(root, 'pod'));
    writeFileSync(join(root, 'cgroup.controllers'), 'memory\n');
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const count = (kills: number): void =>
    writeFileSync(join(root, 'pod/memory.events'), `oom 9\noom_kill 9\noom_group_kill ${kills}\n`);
  const podOf = (...containerStatuses: Partial<ContainerStatus>[]): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', uid: 'u' },
    status: { containerStatuses: containerStatuses as ContainerStatus[] },
  });
  const shown = (id: string, reason: string) => ({ exitCode: 137, reason, containerID: `containerd://${id}` });

  /** The returned function passes runs to the reader of a new agent and returns the resulting reasons of the runs. */
  async function agent() {
    const cgroups = await openCgroups(root);
    const read = createOomReader({ podDirectory, kills: () => cgroups.oomKills('/pod'), log: silentLog });
    return async (runs: ContainerObservation[], pod = podOf()): Promise<(string | undefined)[]> =>
      (await read(pod, { sandboxes: [], containers: runs })).containers.map(({ reason }) => reason);
  }

  it('the OOM reader sets OOMKilled for a killed run, also for a new agent and after the group was removed', async () => {
    const reasons = await agent();
    count(0);
    expect(await reasons([run('a', undefined)])).toEqual([undefined]);
    count(1);
    expect(await reasons([run('a', 137)])).toEqual(['OOMKilled']);
    expect(await reasons([run('a', 137)])).toEqual(['OOMKilled']);
    expect(readdirSync(podDirectory)).toEqual(['oom-kills.json']);
    rmSync(join(root, 'pod'), { recursive: true });
    expect(await reasons([run('a', 137)])).toEqual(['OOMKilled']);
    expect(await (await agent())([run('a', 137)])).toEqual(['OOMKilled']);
  });

  it('the OOM reader does not change an earlier Error or a later SIGKILL of another origin', async () => {
    const reasons = await agent();
    count(0);
    expect(await reasons([run('a', 137)])).toEqual(['Error']);
    count(1);
    expect(await reasons([run('a', 137), run('b', 137)])).toEqual(['Error', 'OOMKilled']);
    expect(await reasons([run('a', 137), run('b', 137), run('c', 137)])).toEqual(['Error', 'OOMKilled', 'Error']);
    const next = await agent();
    const pod = podOf({ name: 'app', restartCount: 1, state: { terminated: shown('x', 'Error') } });
    count(2);
    expect(await next([run('a', 137), run('b', 137), run('d', 137, { attempt: 1 })], pod)).toEqual([
      'Error',
      'OOMKilled',
      'OOMKilled',
    ]);
  });

  it('the OOM reader does not change a SIGKILL of another origin after a start that failed for lack of memory', async () => {
    const reasons = await agent();
    count(1);
    const failed = run('a', 128, { reason: 'StartError' });
    expect(await reasons([failed])).toEqual(['StartError']);
    expect(await reasons([failed, run('b', 137)])).toEqual(['StartError', 'Error']);
  });

  it('the OOM reader accounts for a kill once if the runtime reports it late', async () => {
    const reasons = await agent();
    count(1);
    expect(await reasons([run('a', 137)])).toEqual(['OOMKilled']);
    count(2);
    // Run b ends after the runtime has reported the kill of run a.
    expect(await reasons([reported('a'), run('b', undefined)])).toEqual(['OOMKilled', undefined]);
    expect(await reasons([reported('a'), run('b', 137)])).toEqual(['OOMKilled', 'OOMKilled']);
    expect(await reasons([reported('a'), run('b', 137), reported('c')])).toEqual(Array(3).fill('OOMKilled'));
    count(3);
    expect(await reasons([run('d', 137)])).toEqual(['OOMKilled']);
  });

  it('the OOM reader accounts for kills that the runtime reports', async () => {
    const reasons = await agent();
    count(1);
    expect(await reasons([reported('a')])).toEqual(['OOMKilled']);
    expect(await reasons([reported('a'), run('b', 137)])).toEqual(['OOMKilled', 'Error']);
    // A new agent reads the account that the previous agent has written.
    expect(await (await agent())([reported('a'), run('c', 137)])).toEqual(['OOMKilled', 'Error']);
  });

  it("the OOM reader keeps the reasons in the Pod's status if there is no account file", async () => {
    count(5);
    const reasons = await agent();
    const pod = podOf({
      name: 'app',
      restartCount: 2,
      state: { terminated: shown('c', 'Error') },
      lastState: { terminated: shown('b', 'OOMKilled') },
    });
    const runs = ['a', 'b', 'c'].map((id, attempt) => run(id, 137, { attempt }));
    expect(await reasons(runs, pod)).toEqual(['Error', 'OOMKilled', 'Error']);
  });

  it('the OOM reader judges runs that ended while no agent ran', async () => {
    count(1);
    expect(await (await agent())([run('a', 137)])).toEqual(['OOMKilled']);
  });

  it('the OOM reader keeps the reason if the counts cannot be read, and works without an account file', async () => {
    expect(await (await agent())([run('a', 137)])).toEqual(['Error']);
    count(1);
    writeFileSync(join(podDirectory, 'oom-kills.json'), '{"groupId":');
    expect(await (await agent())([run('b', 137)])).toEqual(['OOMKilled']);
    rmSync(podDirectory, { recursive: true });
    const reasons = await agent();
    expect(await reasons([run('c', 137)])).toEqual(['OOMKilled']);
    expect(await reasons([run('c', 137)])).toEqual(['OOMKilled']);
  });
});

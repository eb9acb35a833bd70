import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { Pod, PodRecord, PodTransition } from '../../src/api/generated/types.ts';
import { runCommand } from '../../src/platform/processes.ts';
import { LAUNCHER } from '../support/lifepod.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { condition, ended, isReady, runs, waitsFor } from '../support/pods.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';
import { untilLine } from '../support/until-line.ts';

interface Timeline {
  pod: string;
  uid: string;
  transitions: PodTransition[];
}

const timelineOf = async (name: string): Promise<Timeline> =>
  JSON.parse(await lifepod.cliOk('timeline', name, '-o', 'json')) as Timeline;
/** Returns a line such as `one#0 Exited 0`. */
const lineOf = ({ container, attempt, type, exitCode }: PodTransition): string =>
  [container === undefined ? '' : attempt === undefined ? container : `${container}#${attempt}`, type, exitCode]
    .filter((part) => part !== undefined && part !== '')
    .join(' ');
const deleted = async (name: string): Promise<void> => {
  await lifepod.delete('pod', name, '--wait=false');
};
const sh = (script: string): object => ({ exec: { command: ['sh', '-c', script] } });
const defer = (name: string, script: string, more: object = {}): object => ({
  name,
  image: 'busybox:1.28',
  command: ['sh', '-c', script],
  ...more,
});

describe('timeline and the record of a whole life', () => {
  const LIFE = [
    'Created',
    'Scheduled',
    'SandboxReady',
    'one#0 Started',
    'one#0 Exited 0',
    'app#0 Started',
    'app#0 HookBegan',
    'app#0 HookDone',
    'app#0 ProbeFailing',
    'app#0 ProbePassing',
    'TerminationBegan',
    'bye DeferBegan',
    'bye#0 Started',
    'bye#0 Exited 0',
    'bye DeferEnded 0',
    'app#0 StopSignal',
    'app#0 Exited 0',
    'after DeferBegan',
    'after#0 Started',
    'after#0 Exited 4',
    'after DeferEnded 4',
    'SandboxStopped',
    'Removed',
    'Gone',
  ];
  let uid = '';

  test('the steps of a Pod are recorded in order, and lifepod timeline draws them before and after the Pod is deleted', async () => {
    const readinessProbe = { ...sh('test -e /tmp/ready'), periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 10 };
    await lifepod.apply(
      pod('whole', {
        init: [{ name: 'one', script: 'exit 0' }],
        app: [{ name: 'app', script: WAIT, readinessProbe, lifecycle: { postStart: sh('exit 0') } }],
        spec: { deferContainers: [defer('bye', 'exit 0'), defer('after', 'exit 4', { trigger: 'PostExit' })] },
      }),
    );
    uid = (await record.until('whole', runs('app'))).metadata.uid ?? '';
    await record.event('whole', /Readiness probe failed/);
    await lifepod.execOk('whole', '-c', 'app', '--', 'touch', '/tmp/ready');
    await record.until('whole', isReady);
    const living = await lifepod.cliOk('timeline', 'whole');
    expect(living).toMatch(new RegExp(`^whole \\(${lifepod.namespace}, UID [0-9a-f]{8}\\)$`, 'm'));
    expect(living).toMatch(/^init {2}one .*█.* exit 0$/m);
    expect(living).toMatch(/^app {3}app .*█.*▲.* running$/m);
    expect(living).toMatch(/^defer bye .* not yet due$/m);
    expect(living).toMatch(/^ {6}after .* not yet due$/m);

    await deleted('whole');
    await record.gone('whole');
    const { transitions, ...whose } = await timelineOf('whole');
    expect(whose).toMatchObject({ pod: 'whole', uid });
    const lines = transitions.map(lineOf);
    expect(lines.filter((line) => LIFE.includes(line))).toEqual(LIFE);
    const times = transitions.map(({ at }) => at);
    expect(times).toEqual([...times].sort());
    expect(new Set(transitions.map(({ key }) => key)).size).toBe(transitions.length);
    const gone = await lifepod.cliOk('timeline', 'whole', '--steps');
    expect(gone).toMatch(/^defer bye .*█.* exit 0$/m);
    expect(gone).toMatch(/^ {6}after .*█.* exit 4$/m);
    expect(gone).toMatch(
      /^Deleted at \+[\d.]+s, deadline 30\.0s later, (?:ended after [\d.]+s, )?gone after [\d.]+s$/m,
    );
    expect(gone).toMatch(/^\+[\d.]+s +after#0 +Exited +4 Error$/m);
  });

  test('lifepod timeline finds a record by the name, the UID or the start of the UID of the Pod, and kubectl lists the record', async () => {
    const byName = await timelineOf('whole');
    expect(await timelineOf(uid)).toEqual(byName);
    expect(await timelineOf(uid.slice(0, 13))).toEqual(byName);
    expect(await lifepod.kubectlOk('get', 'podrecords', '--field-selector', `podUID=${uid}`)).toMatch(
      new RegExp(`^POD +UID +STEPS +AGE\nwhole +${uid.slice(0, 8)} +${byName.transitions.length} +\\S+\n$`),
    );
    expect(await lifepod.cli('timeline', 'never-was')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        new RegExp(`^lifepod: no Pod never-was in namespace ${lifepod.namespace}, and no record of one: [^\\n]+\\n$`),
      ),
    });
    expect(await lifepod.cli('timeline', 'whole', '-o', 'yaml')).toMatchObject({
      code: 1,
      stderr: /^lifepod: -o yaml is /,
    });
  });

  test('lifepod timeline --list shows the lives of all Pods of a name, and a UID in the list selects one', async () => {
    const failing = pod('again', { app: [{ name: 'app', script: 'exit 3' }], spec: { restartPolicy: 'Never' } });
    await lifepod.apply(failing);
    const first = (await record.until('again', ended('app'))).metadata.uid ?? '';
    await deleted('again');
    const types = ['-o', 'jsonpath={.transitions[*].type}{"\\n"}'];
    const watched = ['get', 'podrecords', '--field-selector', `podUID=${first}`, '-w', ...types];
    await lifepod.until(watched, (line) => /\bGone\b/.test(line));
    await record.gone('again');
    await lifepod.apply(pod('again'));
    const second = await record.until('again', (each) => isReady(each) && each.metadata.uid !== first);
    const shown = [first, second.metadata.uid ?? ''].map((each) => each.slice(0, 8));
    expect(await lifepod.cliOk('timeline', 'again', '--list')).toMatch(
      new RegExp(
        `^UID +CREATED +ENDED +RESULT\n${shown[0]} +\\S+Z +\\S+Z +\\w+, app exit 3\n${shown[1]} +\\S+Z +- +Running\n$`,
      ),
    );
    expect(await lifepod.cliOk('timeline', shown[0] ?? '')).toMatch(/^app +app .* exit 3$/m);
    expect(JSON.parse(await lifepod.cliOk('timeline', first, '--list', '-o', 'json'))).toMatchObject([
      { uid: first, result: expect.stringMatching(/ exit 3$/) },
      { uid: second.metadata.uid, result: 'Running' },
    ]);
    await deleted('again');
  });

  test('lifepod timeline exits with code 0 and no message when the reader of its output has exited', async () => {
    const at = new Date().toISOString().replace('Z', '000Z');
    const transitions = Array.from({ length: 2000 }, (_, i) => ({ key: `step-${i}`, at, type: 'Step' }));
    const of = { podName: 'long', podUID: 'long' };
    const long = { apiVersion: 'lifepod.io/v1', kind: 'PodRecord', metadata: { name: 'long.0' }, ...of, transitions };
    await lifepod.kubectlInput(JSON.stringify(long), 'create', '-f', '-');
    const line = `${LAUNCHER} timeline long -o json --data-dir ${lifepod.dataDir} -n ${lifepod.namespace} | head -n 1; echo "code \${PIPESTATUS[0]}"`;
    expect(await runCommand('bash', ['-c', line])).toMatchObject({ stdout: '{\ncode 0\n', stderr: '' });
  });

  test('a record is kept when its namespace is deleted, and shows the containers that ran during the deletion', async () => {
    await lifepod.kubectlOk('create', 'namespace', 'going');
    const deferContainers = [defer('bye', 'exit 0'), defer('after', 'exit 4', { trigger: 'PostExit' })];
    const { metadata, ...rest } = pod('inside', { spec: { deferContainers } });
    await lifepod.apply({ ...rest, metadata: { ...(metadata as object), namespace: 'going' } });
    await lifepod.wait('-n', 'going', 'pod/inside', '--for=condition=Ready');
    const { metadata: inside } = await lifepod.get<Pod>('pod', 'inside', '-n', 'going');
    await lifepod.delete('namespace', 'going');
    const { transitions, ...whose } = await timelineOf(inside.uid ?? '');
    expect(whose).toMatchObject({ pod: 'inside', namespace: 'going' });
    const wanted = LIFE.filter((line) => !/one#0|Hook|Probe/.test(line));
    expect(transitions.map(lineOf).filter((line) => wanted.includes(line))).toEqual(wanted);
    expect(await lifepod.cliOk('why', 'inside', '-n', 'going')).toMatch(
      /^inside has been gone since .*: its owner or its namespace was deleted, /,
    );
  });

  test('lifepod timeline -w prints each step until the Pod is deleted', async () => {
    await lifepod.apply(pod('watched'));
    await record.until('watched', isReady);
    const args = ['timeline', '--data-dir', lifepod.dataDir, '-n', lifepod.namespace, 'watched', '-w'];
    const child = spawn(LAUNCHER, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      if (output === '') void deleted('watched');
      output += chunk;
    });
    expect((await once(child, 'close'))[0]).toBe(0);
    expect(output).toMatch(
      /Created\n.*app#0 {2}Started\n.*TerminationBegan.*app#0 {2}Exited {2}0 Completed\n.*Gone\n$/s,
    );
    expect(output.split('\n').filter((line) => line.includes('Exited'))).toHaveLength(1);
    // timeline -w ends for a deleted Pod even if the record lacks the last step, because no more steps will follow.
    const { uid = '', transitions } = await timelineOf('watched');
    const cut = JSON.stringify([{ op: 'remove', path: `/transitions/${transitions.length - 1}` }]);
    await lifepod.kubectlOk('patch', 'podrecord', `${uid}.0`, '--type=json', '-p', cut);
    expect(await lifepod.cliOk('timeline', 'watched', '-w')).not.toContain('Gone');
  });

  test('SIGINT ends lifepod timeline -w with exit code 130', async () => {
    await lifepod.apply(pod('left'));
    await record.until('left', isReady);
    const child = spawn(
      LAUNCHER,
      ['timeline', '--data-dir', lifepod.dataDir, '-n', lifepod.namespace, 'left', '-w', '-o', 'json'],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const [first] = (await once(child.stdout, 'data')) as [Buffer];
    expect(JSON.parse(String(first).split('\n')[0] ?? '')).toMatchObject({ key: 'Created', type: 'Created' });
    child.kill('SIGINT');
    expect((await once(child, 'close'))[0]).toBe(130);
    await deleted('left');
  });
});

describe('why', () => {
  const why = (name: string): Promise<string> => lifepod.cliOk('why', name);

  test('lifepod why explains a Pod that is not scheduled', async () => {
    const resources = { requests: { cpu: '9000' } };
    await lifepod.apply(pod('large', { app: [{ name: 'app', script: WAIT, resources }] }));
    await record.until('large', (each) => condition(each, 'PodScheduled')?.status === 'False');
    expect(await why('large')).toMatch(
      /^large can never be scheduled: it requests 9k cpu, and the node node-1 has only \d+ for all Pods together\.\n.*1 Insufficient cpu\./,
    );
    expect(await lifepod.cliOk('timeline', 'large')).toMatch(
      /it has not reached a node yet; 'lifepod why large -n \S+ --data-dir \S+' shows why/,
    );
    await deleted('large');
    await record.gone('large');
    expect(await why('large')).toMatch(
      /^large has been gone since .* UTC: it was deleted before any of its containers ran; it was not scheduled, 0\/1 nodes are /,
    );
    expect(await lifepod.cliOk('timeline', 'large', '--steps')).toMatch(
      / NotScheduled +Unschedulable 0\/1 nodes.* Gone$/ms,
    );
  });

  test('lifepod why explains a Pod that waits for its image', async () => {
    await lifepod.apply(pod('unpulled', { app: [{ name: 'app', script: WAIT, image: '127.0.0.1:1/none:1' }] }));
    await record.until('unpulled', waitsFor('app', 'ErrImagePull', 'ImagePullBackOff'));
    expect(await why('unpulled')).toMatch(
      /^unpulled waits for the image 127\.0\.0\.1:1\/none:1 of its container app: it cannot be pulled \(.+\), the next attempt is in \d+\.\d+s\.\n/,
    );
    await deleted('unpulled');
  });

  test('lifepod why explains a Pod that is not ready', async () => {
    const readinessProbe = {
      ...sh('echo still cold; exit 1'),
      periodSeconds: 1,
      failureThreshold: 1,
      timeoutSeconds: 10,
    };
    await lifepod.apply(pod('cold', { app: [{ name: 'app', script: WAIT, readinessProbe }] }));
    await record.event('cold', /Readiness probe failed/);
    expect(await why('cold')).toMatch(/^cold is not ready: the readiness probe of container app fails, still cold\.\n/);
    await deleted('cold');
  });

  test('lifepod why explains a Pod that restarts', async () => {
    await lifepod.apply(pod('crashing', { app: [{ name: 'app', script: 'echo no such host >&2; exit 7' }] }));
    await record.until('crashing', waitsFor('app', 'CrashLoopBackOff'));
    expect(await why('crashing')).toMatch(
      /^crashing keeps restarting: container app ended with code 7; it restarts in \d+\.\d+s\.\n {2}- 2 runs, .*\n {2}- its log: no such host\n/,
    );
    await deleted('crashing');
  });

  test('lifepod why names the defer container and then the PID 1 for which a deletion waits, and later reports how the Pod ended', async () => {
    const more = {
      terminationGracePeriodSeconds: 60,
      deferContainers: [defer('quick', 'exit 0'), defer('slow', 'until [ -e /tmp/go ]; do sleep 0.1; done')],
    };
    await lifepod.apply(pod('staying', { app: [{ name: 'app', script: 'sleep 1000; exit 0' }], spec: more }));
    await record.until('staying', isReady);
    await deleted('staying');
    await record.until('staying', runs('slow'));
    expect(await why('staying')).toMatch(
      /^staying is not gone yet: its defer container slow \(2 of 2\) has been running for [\d.]+s; deadline \d\d:\d\d:\d\d UTC \(in [\d.]+s\)\.\n/,
    );
    await lifepod.execOk('staying', '-c', 'slow', '--', 'touch', '/tmp/go');
    await record.until('staying', ended('slow'));
    await untilLine(
      LAUNCHER,
      ['timeline', '--data-dir', lifepod.dataDir, '-n', lifepod.namespace, 'staying', '-w'],
      process.env,
      (line) => line.includes('StopSignal'),
    );
    expect(await why('staying')).toMatch(
      /^staying is not gone yet: (PID 1 of container app has ignored its stop signal for|container app was just sent its stop signal).*it will be killed at/,
    );
    await lifepod.delete('pod', 'staying', '--grace-period=1', '--wait=false');
    await record.gone('staying');
    expect(await why('staying')).toMatch(
      /^staying has been gone since \d\d:\d\d:\d\d UTC: it was deleted, and its termination took /,
    );
    expect(await lifepod.cliOk('timeline', 'staying')).toMatch(/▓+.*137.* exit 137$/m);
  });
});

test('after kill -9 of the engine, each record is completed with the steps of the outage, and no step is in it twice', async () => {
  const killed = async (meanwhile?: () => void): Promise<void> => {
    record.end();
    await lifepod.kill('SIGKILL');
    meanwhile?.();
    await lifepod.up();
  };
  /** Checks that the ended record has the expected steps, and none twice. Resolves with the keys of its steps. */
  const whole = async (name: string, ...expected: string[]): Promise<string[]> => {
    const types = 'jsonpath={.transitions[*].type}{"\\n"}';
    const watched = ['get', 'podrecords', '--field-selector', `podName=${name}`, '-w', '-o', types];
    await lifepod.until(watched, (line) => /\bGone\b/.test(line));
    const { transitions } = await timelineOf(name);
    const keys = transitions.map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
    const lines = transitions.map(lineOf);
    const each = ['app#0 Started', 'bye#0 Started', 'bye#0 Exited 0', 'bye DeferEnded 0', 'app#0 Exited 0'];
    for (const line of [...each, ...expected, 'SandboxStopped', 'Removed', 'Gone'])
      expect(lines.filter((other) => other === line)).toEqual([line]);
    return keys;
  };
  const shared = join(lifepod.dataDir, lifepod.namespace);
  const mount = { volumeMounts: [{ name: 'work', mountPath: '/work' }] };
  const bye = { deferContainers: [defer('bye', 'exit 0')] };
  await lifepod.apply(
    pod('surviving', {
      app: [
        { name: 'app', script: WAIT },
        { name: 'brief', script: 'until [ -e /work/end ]; do usleep 20000; done; exit 9', ...mount },
      ],
      spec: {
        restartPolicy: 'Never',
        ...bye,
        volumes: [{ name: 'work', hostPath: { path: shared, type: 'DirectoryOrCreate' } }],
      },
    }),
  );
  await lifepod.apply(pod('object-gone', { spec: bye }));
  for (const name of ['surviving', 'object-gone']) await record.until(name, isReady);
  const before = await timelineOf('surviving');
  await deleted('object-gone');
  await record.gone('object-gone');
  await killed(() => writeFileSync(join(shared, 'end'), ''));
  await whole('object-gone');

  await record.until('surviving', ended('brief'));
  await deleted('surviving');
  await record.until('surviving', (each) => condition(each, 'Deferred')?.status === 'True');
  await killed();
  const keys = await whole('surviving', 'brief#0 Started', 'brief#0 Exited 9');
  expect(keys).toEqual(expect.arrayContaining(before.transitions.map(({ key }) => key)));
  const parts = await lifepod.get<{ items: PodRecord[] }>('podrecords', '--field-selector', 'podName=surviving');
  expect(parts.items.map(({ metadata }) => metadata.name)).toEqual([expect.stringMatching(/\.0$/)]);
});

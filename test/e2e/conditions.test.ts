import { describe, expect } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { processesNaming } from '../../src/engine/leftovers.ts';
import { pod, SHARED, WAIT } from '../support/manifests.ts';
import { condition, ended, inPhase, isReady, restarted, runs, statusOf, waitsFor } from '../support/pods.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

const finished = (name: string): Promise<void> => lifepod.delete('pod', name, '--now', '--wait=false');
const conditionsOf = ({ status }: Pod): Record<string, string> =>
  Object.fromEntries(
    (status?.conditions ?? []).map(({ type, status, reason }) => [type, reason ? `${status} ${reason}` : status]),
  );
const timesOf = ({ status }: Pod): Record<string, string | undefined> =>
  Object.fromEntries((status?.conditions ?? []).map(({ type, lastTransitionTime }) => [type, lastTransitionTime]));
const exec = (name: string, script: string): Promise<string> =>
  lifepod.execOk(name, '-c', 'app', '--', 'sh', '-c', script);
const terminated = async (name: string, container = 'app') =>
  statusOf(await record.until(name, ended(container)), container).state?.terminated;
const once = (script: string, more: object = {}): Parameters<typeof pod>[1] => ({
  app: [{ name: 'app', script, ...more }],
  spec: { restartPolicy: 'Never' },
});

describe.concurrent('the status of a Pod', () => {
  describe('conditions', () => {
    test('the conditions of a starting Pod become True one after the other, and have a reason while they are False', async () => {
      const readinessProbe = {
        exec: { command: ['[', '-e', '/work/ready', ']'] },
        periodSeconds: 1,
        timeoutSeconds: 10,
      };
      await lifepod.apply(
        pod('steps', {
          init: [{ name: 'init', script: 'until [ -e /work/go ]; do usleep 50000; done', ...SHARED.mount }],
          app: [{ name: 'app', script: WAIT, readinessProbe, ...SHARED.mount }],
          spec: { volumes: SHARED.volumes },
        }),
      );
      const initializing = await record.until('steps', runs('init'));
      expect(conditionsOf(initializing)).toEqual({
        PodReadyToStartContainers: 'True',
        Initialized: 'False ContainersNotInitialized',
        Ready: 'False ContainersNotReady',
        ContainersReady: 'False ContainersNotReady',
        PodScheduled: 'True',
      });
      // The init container may exit, and end the exec session, before touch returns.
      await lifepod.exec('steps', '-c', 'init', '--', 'touch', '/work/go');
      const initialized = await record.until('steps', runs('app'));
      expect(conditionsOf(initialized)).toMatchObject({ Initialized: 'True', Ready: 'False ContainersNotReady' });
      await exec('steps', 'touch /work/ready');
      const ready = await record.until('steps', isReady);
      expect(conditionsOf(ready)).toEqual({
        PodReadyToStartContainers: 'True',
        Initialized: 'True',
        Ready: 'True',
        ContainersReady: 'True',
        PodScheduled: 'True',
      });
      expect(timesOf(ready)).toMatchObject({
        PodScheduled: timesOf(initializing)['PodScheduled'],
        PodReadyToStartContainers: timesOf(initializing)['PodReadyToStartContainers'],
        Initialized: timesOf(initialized)['Initialized'],
      });
      for (const [type, at] of Object.entries(timesOf(ready))) {
        const { pod } = record.history('steps').find(({ pod }) => condition(pod, type)?.status === 'True') ?? {};
        expect(pod && timesOf(pod)[type]).toBe(at);
      }
      // A change of the metadata does not change the status.
      await lifepod.kubectlOk('annotate', 'pod', 'steps', 'example.com/note=1');
      const annotated = await record.until(
        'steps',
        ({ metadata }) => metadata.annotations?.['example.com/note'] === '1',
      );
      expect(annotated.status).toEqual(ready.status);
      await finished('steps');
    });

    test('completed and failed Pods have the same conditions as upstream', async () => {
      await lifepod.apply(pod('completed', { ...once('true'), init: [{ name: 'init', script: 'true' }] }));
      await lifepod.apply(pod('failed', once('false')));
      const notReady = (reason: string) => (pod: Pod) =>
        condition(pod, 'Ready')?.reason === reason && condition(pod, 'PodReadyToStartContainers')?.status === 'False';
      expect(conditionsOf(await record.until('completed', notReady('PodCompleted')))).toEqual({
        PodReadyToStartContainers: 'False',
        Initialized: 'True PodCompleted',
        Ready: 'False PodCompleted',
        ContainersReady: 'False PodCompleted',
        PodScheduled: 'True',
      });
      expect(conditionsOf(await record.until('failed', notReady('PodFailed')))).toEqual({
        PodReadyToStartContainers: 'False',
        Initialized: 'True',
        Ready: 'False PodFailed',
        ContainersReady: 'False PodFailed',
        PodScheduled: 'True',
      });
      await finished('completed');
      await finished('failed');
    });

    test('the condition Ready waits for the conditions of readiness gates', async () => {
      const type = 'example.com/gate';
      await lifepod.apply(pod('gated', { spec: { readinessGates: [{ conditionType: type }] } }));
      const closed = await record.until('gated', (pod) => condition(pod, 'ContainersReady')?.status === 'True');
      expect(condition(closed, 'Ready')).toMatchObject({
        status: 'False',
        reason: 'ReadinessGatesNotReady',
        message: `corresponding condition of pod readiness gate "${type}" does not exist.`,
      });
      expect(await lifepod.kubectlOk('get', 'pod', 'gated', '-o', 'wide')).toMatch(/ 0\/1\n$/);
      const set = (status: string): Promise<string> =>
        lifepod.kubectlOk(
          'patch',
          'pod',
          'gated',
          '--subresource=status',
          '-p',
          JSON.stringify({
            status: { conditions: [{ type, status, lastTransitionTime: '2020-01-01T00:00:00Z', reason: 'Asked' }] },
          }),
        );
      await set('True');
      const open = await record.until('gated', isReady);
      expect(await lifepod.kubectlOk('get', 'pod', 'gated', '-o', 'wide')).toMatch(/ 1\/1\n$/);
      expect(condition(open, type)).toEqual({
        type,
        status: 'True',
        lastTransitionTime: '2020-01-01T00:00:00Z',
        reason: 'Asked',
      });
      await set('False');
      const again = await record.until('gated', (pod) => !isReady(pod));
      expect(condition(again, 'Ready')).toMatchObject({
        reason: 'ReadinessGatesNotReady',
        message: `the status of pod readiness gate "${type}" is not "True", but False`,
      });
      expect(condition(again, 'ContainersReady')?.status).toBe('True');
      await finished('gated');
    });

    test('observedGeneration of the status and its conditions follows the generation of the Pod', async () => {
      await lifepod.apply(pod('observed'));
      const first = await record.until('observed', isReady);
      const generations = ({ status }: Pod) => status?.conditions?.map((each) => each.observedGeneration);
      expect(first.status?.observedGeneration).toBe(1);
      expect(generations(first)).toEqual([1, 1, 1, 1, 1]);
      await lifepod.kubectlOk('patch', 'pod', 'observed', '-p', '{"spec":{"activeDeadlineSeconds":3600}}');
      const second = await record.until('observed', ({ status }) => status?.observedGeneration === 2);
      expect(second.metadata.generation).toBe(2);
      expect(generations(second)).toEqual([2, 2, 2, 2, 2]);
      expect(timesOf(second)).toEqual(timesOf(first));
      await finished('observed');
    });
  });

  describe('containers', () => {
    test('container statuses show the times, the container ID and the image ID of each run', async () => {
      const before = Math.floor(Date.now() / 1000) * 1000;
      // The app runs 2 s, because the recorded time of its start may be up to 1 s too late on a busy machine.
      await lifepod.apply(pod('identities', { ...once('sleep 2'), init: [{ name: 'init', script: 'true' }] }));
      const { status = {} } = await record.until('identities', inPhase('Succeeded'));
      const [init, app] = [status.initContainerStatuses?.[0], status.containerStatuses?.[0]];
      const times = [
        status.startTime,
        init?.state?.terminated?.startedAt,
        init?.state?.terminated?.finishedAt,
        app?.state?.terminated?.startedAt,
      ];
      const millis = times.map((time) => Date.parse(time ?? ''));
      expect(millis).toEqual([...millis].sort((a, b) => a - b));
      expect(millis[0]).toBeGreaterThanOrEqual(before);
      const ran = Date.parse(app?.state?.terminated?.finishedAt ?? '') - (millis[3] ?? 0);
      expect(ran).toBeGreaterThanOrEqual(1000);
      for (const each of [init, app]) {
        expect(each?.containerID).toMatch(/^containerd:\/\/[0-9a-f]{64}$/);
        expect(each?.state?.terminated?.containerID).toBe(each?.containerID);
        expect(each?.imageID).toMatch(/sha256:[0-9a-f]{64}$/);
        expect(each?.image).toBe('busybox:1.28');
      }
      expect(init?.containerID).not.toBe(app?.containerID);
      expect(init?.imageID).toBe(app?.imageID);
      expect(status).toMatchObject({
        hostIP: status.hostIPs?.[0]?.ip,
        podIP: status.podIPs?.[0]?.ip,
        qosClass: 'BestEffort',
      });
      await finished('identities');
    });

    test('exit codes and reasons distinguish an exit, a signal, an OOM kill and a missing program', async () => {
      const apps = (name: string, script: string, more: object = {}) => ({ name, script, ...more });
      const marker = '16180339';
      await lifepod.apply(
        pod('codes', {
          app: [
            apps('three', 'exit 3'),
            apps('killed', `exec sleep ${marker}`),
            apps('memory', 'exec tail /dev/zero', { resources: { limits: { memory: '64Mi' } } }),
            { name: 'missing', script: '', command: ['/no/such/program'] },
          ],
          spec: { restartPolicy: 'Never' },
        }),
      );
      await record.until('codes', runs('killed'));
      // The status may show the container as running before its shell has executed sleep.
      const begun = 'until grep -q ^sleep /proc/1/cmdline; do :; done';
      await lifepod.execOk('codes', '-c', 'killed', '--', 'sh', '-c', begun);
      for (const { pid } of processesNaming(marker)) process.kill(pid, 'SIGKILL');
      const over = await record.until('codes', inPhase('Failed'));
      const state = (name: string) => statusOf(over, name).state?.terminated;
      expect(state('three')).toMatchObject({ exitCode: 3, reason: 'Error' });
      expect(state('killed')).toMatchObject({ exitCode: 137, reason: 'Error' });
      expect(state('memory')).toMatchObject({ exitCode: 137, reason: 'OOMKilled' });
      expect(state('missing')).toMatchObject({ exitCode: 128, reason: 'StartError' });
      expect(state('missing')?.message).toContain('/no/such/program');
      expect(await lifepod.kubectlOk('describe', 'pod', 'codes')).toMatch(/Reason: +OOMKilled\n +Exit Code: +137/);
      await finished('codes');
    });

    test('a process that is not PID 1 and does not handle the stop signal exits with code 143', async () => {
      const manifest = pod('signalled', {
        app: [{ name: 'app', script: 'exec sleep 3600' }],
        spec: { shareProcessNamespace: true },
      });
      Object.assign(manifest['metadata'] as object, { finalizers: ['example.com/keep'] });
      await lifepod.apply(manifest);
      await record.until('signalled', isReady);
      await lifepod.delete('pod', 'signalled', '--wait=false');
      expect(await terminated('signalled')).toMatchObject({ exitCode: 143, reason: 'Error' });
      await lifepod.kubectlOk('patch', 'pod', 'signalled', '--type=merge', '-p', '{"metadata":{"finalizers":null}}');
    });

    test('termination messages come from the file at terminationMessagePath, else from the log of a container that failed', async () => {
      const fallback = { terminationMessagePolicy: 'FallbackToLogsOnError' };
      await lifepod.apply(
        pod('messages', {
          app: [
            { name: 'default', script: 'echo default >/dev/termination-log' },
            { name: 'path', script: 'echo path >/tmp/why; exit 1', terminationMessagePath: '/tmp/why' },
            { name: 'log', script: 'echo out; echo err >&2; exit 1', ...fallback },
            { name: 'both', script: 'echo log; echo file >/dev/termination-log; exit 1', ...fallback },
            { name: 'well', script: 'echo log', ...fallback },
          ],
          spec: { restartPolicy: 'Never' },
        }),
      );
      const over = await record.until('messages', inPhase('Failed'));
      const messages = over.status?.containerStatuses?.map(({ name, state }) => [name, state?.terminated?.message]);
      expect(Object.fromEntries(messages ?? [])).toEqual({
        default: 'default\n',
        path: 'path\n',
        log: expect.stringMatching(/^(out\nerr\n|err\nout\n)$/),
        both: 'file\n',
        well: undefined,
      });
      await finished('messages');
    });

    test('termination messages are truncated to 4096 bytes per container and 12 KiB per Pod', async () => {
      const script = 'yes x | head -c 9000 >/dev/termination-log';
      const containers = (count: number) =>
        Array.from({ length: count }, (_, index) => ({ name: `app-${index}`, script }));
      await lifepod.apply(pod('long', { app: containers(1), spec: { restartPolicy: 'Never' } }));
      await lifepod.apply(pod('many', { app: containers(4), spec: { restartPolicy: 'Never' } }));
      const lengths = async (name: string) =>
        (await record.until(name, inPhase('Succeeded'))).status?.containerStatuses?.map(
          ({ state }) => state?.terminated?.message?.length,
        );
      expect(await lengths('long')).toEqual([4096]);
      expect(await lengths('many')).toEqual([3072, 3072, 3072, 3072]);
      await finished('long');
      await finished('many');
    });
  });
});

/** The status of the container `crashing` changes with each restart. */
function withoutCrashing({ status }: Pod): object {
  return { ...status, containerStatuses: status?.containerStatuses?.filter(({ name }) => name !== 'crashing') };
}

test('kill -9 of the engine leaves conditions, times, lastState and restart counts unchanged', async () => {
  await lifepod.apply(
    pod('lasting', {
      init: [{ name: 'init', script: 'true' }],
      app: [
        { name: 'crashing', script: 'echo because >/dev/termination-log; exit 4' },
        {
          name: 'again',
          script: `[ -e /work/second ] && { ${WAIT}; }; touch /work/second; exit 5`,
          readinessProbe: { exec: { command: ['true'] }, periodSeconds: 1, timeoutSeconds: 10 },
          ...SHARED.mount,
        },
      ],
      spec: { volumes: SHARED.volumes, readinessGates: [{ conditionType: 'example.com/gate' }] },
    }),
  );
  await lifepod.apply(pod('over', once('exit 6')));
  const isSettled = (pod: Pod): boolean =>
    waitsFor('crashing', 'CrashLoopBackOff')(pod) && restarted('again', 1)(pod) && statusOf(pod, 'again').ready;
  const before = await record.until('lasting', isSettled);
  const over = await record.until(
    'over',
    (pod) => inPhase('Failed')(pod) && condition(pod, 'PodReadyToStartContainers')?.status === 'False',
  );
  expect(statusOf(before, 'crashing')).toMatchObject({
    restartCount: 1,
    lastState: { terminated: { exitCode: 4, message: 'because\n' } },
  });
  expect(statusOf(before, 'again').lastState?.terminated?.exitCode).toBe(5);

  record.end();
  await lifepod.kill('SIGKILL');
  await lifepod.up();
  // The restart at the end of the back-off shows that the new engine has observed the Pod.
  await record.until('lasting', restarted('crashing', 2));
  const meanwhile = record.history('lasting').filter(({ pod }) => !restarted('crashing', 2)(pod));
  for (const { pod } of meanwhile) expect(withoutCrashing(pod)).toEqual(withoutCrashing(before));
  const waited =
    Date.parse(
      statusOf(await record.until('lasting', waitsFor('crashing', 'CrashLoopBackOff')), 'crashing').lastState
        ?.terminated?.startedAt ?? '',
    ) - Date.parse(statusOf(before, 'crashing').lastState?.terminated?.finishedAt ?? '');
  expect(waited).toBeGreaterThanOrEqual(9000);
  expect(record.now('over').status).toEqual(over.status);
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { Node } from '../../src/api/generated/types.ts';
import { untilFolderHas } from '../support/log-file.ts';
import { pod, SHARED, WAIT } from '../support/manifests.ts';
import {
  condition,
  ended,
  inPhase,
  isReady,
  restarted,
  runs,
  signalFirst,
  statusOf,
  waitsFor,
} from '../support/pods.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

const finished = (name: string): Promise<void> => lifepod.delete('pod', name, '--now', '--wait=false');
/** The test reads the files of the hostPath volume after the Pod is deleted. */
const outliving = (name: string): Record<string, unknown> => ({
  volumes: [{ name: 'work', hostPath: { path: join(lifepod.dataDir, name), type: 'DirectoryOrCreate' } }],
});
const logOf = (name: string): string => readFileSync(join(lifepod.dataDir, name, 'log'), 'utf8');
const noting = (name: string, more: object = {}) => ({
  name,
  script: `echo ${name} begins >>/work/log; trap "echo ${name} ends >>/work/log; exit 0" TERM; while :; do sleep 3600 & wait $!; done`,
  ...SHARED.mount,
  ...more,
});
const sidecar = (name: string, more: object = {}) => noting(name, { restartPolicy: 'Always', ...more });

describe.concurrent('restarts', () => {
  describe('back-off', () => {
    test('the first restart of a container is immediate, the second comes after 10 s, and the waiting message shows the back-off', async () => {
      await lifepod.apply(
        pod('crashing', {
          app: [
            { name: 'app', script: 'exit 3' },
            { name: 'well', script: WAIT },
          ],
        }),
      );
      const message = (pod: object, time: string): string => {
        const { name, uid } = (pod as { metadata: { name: string; uid: string } }).metadata;
        return `back-off ${time} restarting failed container=app pod=${name}_${lifepod.namespace}(${uid})`;
      };
      const first = await record.until('crashing', waitsFor('app', 'CrashLoopBackOff'));
      expect(statusOf(first, 'app')).toMatchObject({
        restartCount: 1,
        ready: false,
        state: { waiting: { message: message(first, '10s') } },
        lastState: { terminated: { exitCode: 3, reason: 'Error' } },
      });
      expect(await lifepod.kubectlOk('get', 'pod', 'crashing')).toMatch(/^crashing +1\/2 +CrashLoopBackOff +1 /m);
      await record.until('crashing', restarted('app', 2));
      const second = await record.until('crashing', waitsFor('app', 'CrashLoopBackOff'));
      expect(statusOf(second, 'app')).toMatchObject({
        restartCount: 2,
        state: { waiting: { message: message(second, '20s') } },
      });
      // Only the logs of the last two runs are kept.
      const logs = join(lifepod.dataDir, 'logs', 'pods', `${lifepod.namespace}_crashing_${second.metadata.uid}`, 'app');
      await untilFolderHas(logs, ['1.log', '2.log']);
      const [before, after] = [first, second].map((pod) =>
        Date.parse(statusOf(pod, 'app').lastState?.terminated?.finishedAt ?? ''),
      );
      expect((after ?? 0) - (before ?? 0)).toBeGreaterThanOrEqual(9000);
      expect(statusOf(second, 'well')).toMatchObject({ restartCount: 0, ready: true });
      expect(second.status?.phase).toBe('Running');
      expect(await record.event('crashing', /BackOff/)).toBe(
        `Warning BackOff: Back-off restarting failed container app in pod crashing_${lifepod.namespace}(${second.metadata.uid})`,
      );
      await finished('crashing');
    });

    test('restartPolicy OnFailure restarts only containers that fail', async () => {
      await lifepod.apply(
        pod('onfailure', {
          app: [
            { name: 'good', script: 'exit 0' },
            { name: 'bad', script: '[ -e /work/again ] && exit 0; touch /work/again; exit 1', ...SHARED.mount },
          ],
          spec: { restartPolicy: 'OnFailure', volumes: SHARED.volumes },
        }),
      );
      const over = await record.until('onfailure', inPhase('Succeeded'));
      expect(statusOf(over, 'good').restartCount).toBe(0);
      expect(statusOf(over, 'bad')).toMatchObject({
        restartCount: 1,
        state: { terminated: { exitCode: 0 } },
        lastState: { terminated: { exitCode: 1 } },
      });
      await finished('onfailure');
    });
  });

  describe('writes of the status', () => {
    test('a restart with probes writes the end, the new readiness, and at most one status per 250 ms in between', async () => {
      const probe = { exec: { command: ['true'] }, periodSeconds: 1 };
      const script = `[ -e /work/again ] || { touch /work/again; sleep 2; exit 1; }; ${WAIT}`;
      const app = { name: 'app', script, ...SHARED.mount, startupProbe: probe, readinessProbe: probe };
      await lifepod.apply(pod('few', { app: [app], spec: { volumes: SHARED.volumes } }));
      await record.until('few', isReady);
      const again = await record.until('few', (each) => restarted('app', 1)(each) && isReady(each));
      const history = record.history('few');
      const end = history.findIndex((seen) => seen.pod.status?.containerStatuses?.[0]?.state?.terminated !== undefined);
      const ready = history.findIndex((seen) => seen.pod.metadata.resourceVersion === again.metadata.resourceVersion);
      const millis = (history[ready]?.at ?? 0) - (history[end]?.at ?? 0);
      expect(end).toBeGreaterThan(0);
      expect(ready - end).toBeGreaterThan(0);
      expect(ready - end).toBeLessThanOrEqual(1 + Math.floor(millis / 250));
      await finished('few');
    });
  });

  describe('native sidecars', () => {
    test('sidecars start in order with the init containers, and stop in reverse order after the apps', async () => {
      const once = (name: string) => ({ name, script: `echo ${name} >>/work/log`, ...SHARED.mount });
      await lifepod.apply(
        pod('order', {
          init: [once('init-1'), sidecar('side-1'), once('init-2'), sidecar('side-2'), once('init-3')],
          app: [noting('app')],
          spec: outliving('order'),
        }),
      );
      const shown = lifepod.until(['get', 'pod', 'order', '-w'], (line) => line.includes('Running'));
      const ready = await record.until('order', isReady);
      expect(statusOf(ready, 'side-1')).toMatchObject({ started: true, ready: true, state: { running: {} } });
      expect(condition(ready, 'Initialized')?.status).toBe('True');
      // The column READY counts sidecars.
      expect((await shown).at(-1)).toMatch(/^order +\d\/3 +Running +0 /);
      await lifepod.delete('pod', 'order', '--wait=false');
      await record.gone('order');
      expect(logOf('order').split('\n')).toEqual([
        'init-1',
        'side-1 begins',
        'init-2',
        'side-2 begins',
        'init-3',
        'app begins',
        'app ends',
        'side-2 ends',
        'side-1 ends',
        '',
      ]);
    });

    test('containers after a sidecar wait for its startup probe', async () => {
      const startupProbe = {
        exec: { command: ['[', '-e', '/work/up', ']'] },
        periodSeconds: 1,
        failureThreshold: 60,
        timeoutSeconds: 10,
      };
      await lifepod.apply(
        pod('gated', {
          init: [sidecar('side', { startupProbe })],
          app: [noting('app')],
          spec: { volumes: SHARED.volumes },
        }),
      );
      await record.event('gated', /Startup probe failed/);
      const gated = await record.until('gated', runs('side'));
      expect(statusOf(gated, 'side')).toMatchObject({ started: false, ready: false });
      expect(statusOf(gated, 'app').state?.waiting?.reason).toBe('PodInitializing');
      expect(condition(gated, 'Initialized')).toMatchObject({
        status: 'False',
        message: 'containers with incomplete status: [side]',
      });
      await lifepod.execOk('gated', '-c', 'side', '--', 'touch', '/work/up');
      const ready = await record.until('gated', isReady);
      expect(statusOf(ready, 'side')).toMatchObject({ started: true, restartCount: 0 });
      await finished('gated');
    });

    test.each(['Never', 'OnFailure'])(
      'with restartPolicy %s, sidecars that exit are restarted, and do not keep the Pod from completing',
      async (restartPolicy) => {
        const name = `sidecar-${restartPolicy.toLowerCase()}`;
        await lifepod.apply(
          pod(name, {
            init: [sidecar('side')],
            app: [{ name: 'app', script: 'until [ -e /work/proceed ]; do usleep 50000; done', ...SHARED.mount }],
            spec: { ...outliving(name), restartPolicy },
          }),
        );
        await record.until(name, runs('app'));
        await signalFirst(lifepod, name, 'side', 'TERM');
        const again = await record.until(name, (pod) => restarted('side', 1)(pod) && runs('side')(pod));
        expect(statusOf(again, 'side').lastState?.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' });
        expect(statusOf(again, 'app')).toMatchObject({ restartCount: 0, state: { running: {} } });
        await lifepod.execOk(name, '-c', 'side', '--', 'touch', '/work/proceed');
        const over = await record.until(name, (pod) => inPhase('Succeeded')(pod) && ended('side')(pod));
        expect(statusOf(over, 'app').state?.terminated?.exitCode).toBe(0);
        expect(record.history(name).some(({ pod }) => inPhase('Succeeded')(pod) && runs('side')(pod))).toBe(false);
        expect(logOf(name)).toBe('side begins\nside ends\nside begins\nside ends\n');
        expect(await lifepod.kubectlOk('get', 'pod', name)).toMatch(new RegExp(`^${name} +0/2 +Completed `, 'm'));
        await finished(name);
      },
    );

    test('a sidecar that fails does not fail the Pod', async () => {
      await lifepod.apply(
        pod('failing', {
          init: [
            {
              name: 'side',
              script: `trap "exit 9" TERM; echo; while :; do sleep 3600 & wait $!; done`,
              restartPolicy: 'Always',
            },
          ],
          app: [{ name: 'app', script: 'true' }],
          spec: { restartPolicy: 'Never' },
        }),
      );
      const over = await record.until('failing', (pod) => inPhase('Succeeded')(pod) && ended('side')(pod));
      expect(statusOf(over, 'side').state?.terminated?.exitCode).toBe(9);
      await finished('failing');
    });

    test('the effective request of a Pod adds the requests of sidecars to those of the apps and of later init containers', async () => {
      const { items } = await lifepod.get<{ items: Node[] }>('nodes');
      const cpus = Number(items[0]?.status?.allocatable?.['cpu']);
      const cpu = (part: number): object => ({
        resources: { requests: { cpu: `${Math.floor(cpus * part * 1000)}m` } },
      });
      const side = { name: 'side', script: WAIT, restartPolicy: 'Always' };
      const once = { name: 'init', script: 'true' };
      const app = { name: 'app', script: WAIT };
      // Two containers that each request 60 % of the node's CPUs fit only if one runs after the other.
      await lifepod.apply(pod('in-turn', { init: [{ ...once, ...cpu(0.6) }, side], app: [{ ...app, ...cpu(0.6) }] }));
      await record.until('in-turn', isReady);
      await lifepod.delete('pod', 'in-turn', '--now');
      await lifepod.apply(pod('with-app', { init: [{ ...side, ...cpu(0.6) }], app: [{ ...app, ...cpu(0.6) }] }));
      await lifepod.apply(
        pod('with-init', {
          init: [
            { ...side, ...cpu(0.6) },
            { ...once, ...cpu(0.6) },
          ],
          app: [{ ...app }],
        }),
      );
      for (const name of ['with-app', 'with-init']) {
        expect(await record.event(name, /FailedScheduling/)).toContain('Insufficient cpu');
        expect(
          condition(await record.until(name, (pod) => condition(pod, 'PodScheduled') !== undefined), 'PodScheduled'),
        ).toMatchObject({
          status: 'False',
          reason: 'Unschedulable',
        });
        await finished(name);
      }
    });
  });
});

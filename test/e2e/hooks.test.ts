import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { pod, SHARED, WAIT } from '../support/manifests.ts';
import { ended, isReady, restarted, runs, statusOf, waitsFor } from '../support/pods.ts';
import { type ProbedServer, startProbedServer } from '../support/probed-server.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

let server: ProbedServer;
test.beforeAll(async () => {
  server = await startProbedServer();
});
test.afterAll(async () => {
  await server?.close();
});

const sh = (script: string): object => ({ exec: { command: ['sh', '-c', script] } });
/** The test's server runs outside the Pod. */
const ask = (path: string, more: object = {}): Record<string, unknown> => ({
  httpGet: { host: '127.0.0.1', port: server.port, path, ...more },
});
const finished = (name: string): Promise<void> => lifepod.delete('pod', name, '--now', '--wait=false');
/** The test reads the files of the hostPath volume after the Pod is deleted. */
const outliving = (name: string): Record<string, unknown> => ({
  volumes: [{ name: 'work', hostPath: { path: join(lifepod.dataDir, name), type: 'DirectoryOrCreate' } }],
});
const logOf = (name: string): string => readFileSync(join(lifepod.dataDir, name, 'log'), 'utf8');
/** Resolves with the milliseconds until the API object is deleted. */
async function deletion(name: string): Promise<number> {
  const begin = Date.now();
  await lifepod.delete('pod', name, '--wait=false');
  return (await record.gone(name)) - begin;
}
const DEAF = 'trap "" TERM; while :; do sleep 1; done';

describe.concurrent('hooks', () => {
  describe('postStart', () => {
    test('the status shows a container as running only after its postStart hook has succeeded', async () => {
      const app = { name: 'app', script: `echo begun; ${WAIT}`, lifecycle: { postStart: ask('/hold') } };
      await lifepod.apply(pod('held', { app: [app, { name: 'other', script: WAIT }] }));
      await server.untilAsked('/hold', 1);
      const held = await record.until('held', runs('other'));
      expect(statusOf(held, 'app')).toMatchObject({
        ready: false,
        started: false,
        state: { waiting: { reason: 'ContainerCreating' } },
      });
      expect(held.status?.phase).toBe('Pending');
      server.release();
      expect(statusOf(await record.until('held', isReady), 'app')).toMatchObject({ started: true, restartCount: 0 });
      expect(record.history('held').some(({ pod }) => runs('app')(pod) && !isReady(pod))).toBe(false);
      expect(server.asked('/hold')).toHaveLength(1);
      expect(server.asked('/hold')[0]?.headers['user-agent']).toBe('kube-lifecycle/1.33');
      await finished('held');
    });

    test('a postStart exec hook runs in its container, and a postStart sleep hook delays the state running', async () => {
      const app = { name: 'app', script: WAIT, lifecycle: { postStart: sh('echo "hooked $NAME" >/proc/1/fd/1') } };
      await lifepod.apply(
        pod('started', {
          app: [
            { ...app, env: [{ name: 'NAME', value: 'app' }] },
            { name: 'slow', script: WAIT, lifecycle: { postStart: { sleep: { seconds: 2 } } } },
          ],
        }),
      );
      const ready = await record.until('started', isReady);
      expect(await lifepod.kubectlOk('logs', 'started', '-c', 'app')).toBe('hooked app\n');
      const startedAt = Date.parse(statusOf(ready, 'slow').state?.running?.startedAt ?? '');
      const shownAt = record.history('started').find(({ pod }) => runs('slow')(pod))?.at ?? 0;
      expect(shownAt - startedAt).toBeGreaterThanOrEqual(2000);
      await finished('started');
    });

    test.each<[string, () => object, RegExp]>([
      ['exec', () => sh('echo secret; exit 3'), /^Exec lifecycle hook .* exited with 3: , message: "secret\\n"$/],
      ['http', () => ({ httpGet: { host: '127.0.0.1', port: 1, path: '/' } }), /^HTTP lifecycle hook .* refused$/],
      ['tcp', () => ({ tcpSocket: { host: '127.0.0.1', port: server.port } }), /^Cannot run handler: /],
    ])('a failed postStart %s hook kills its container', async (kind, hook, message) => {
      const name = `failing-${kind}`;
      // The hook may fail before the script has set its trap. The container then ignores SIGTERM until the grace period ends, so this
      // period is short.
      const spec = { terminationGracePeriodSeconds: 2 };
      await lifepod.apply(pod(name, { app: [{ name: 'app', script: WAIT, lifecycle: { postStart: hook() } }], spec }));
      await record.until(name, restarted('app', 1));
      await record.until(name, waitsFor('app', 'CrashLoopBackOff'));
      expect(await record.event(name, /Hook failed/)).toBe('Warning FailedPostStartHook: PostStartHook failed');
      expect(await record.event(name, /Killing/)).toBe('Normal Killing: FailedPostStartHook');
      const history = record.history(name).map(({ pod }) => pod);
      expect(history.some(runs('app'))).toBe(false);
      const shown = history.filter(waitsFor('app', 'PostStartHookError')).at(-1);
      expect(shown && statusOf(shown, 'app').state?.waiting?.message).toMatch(message);
      expect(record.events(name).join()).not.toContain('lifecycle hook');
      await finished(name);
    });

    test('a hook to an HTTPS server that answers in plain HTTP is retried over HTTP, with a warning and without Authorization', async () => {
      const postStart = ask('/fallback', {
        scheme: 'HTTPS',
        httpHeaders: [{ name: 'Authorization', value: 'secret' }],
      });
      await lifepod.apply(pod('fallback', { app: [{ name: 'app', script: WAIT, lifecycle: { postStart } }] }));
      await record.until('fallback', isReady);
      expect(server.asked('/fallback')[0]?.headers.authorization).toBeUndefined();
      expect(await record.event('fallback', /LifecycleHTTPFallback/)).toBe(
        `Warning LifecycleHTTPFallback: request to HTTPS lifecycle hook 127.0.0.1:${server.port} got HTTP response, retry with HTTP succeeded`,
      );
      await finished('fallback');
    });
  });

  describe('preStop', () => {
    test('the stop signal is sent only after the preStop hook has ended', async () => {
      const app = {
        name: 'app',
        script: 'trap "echo got TERM >>/work/log; exit 0" TERM; while :; do sleep 3600 & wait $!; done',
        lifecycle: { preStop: sh('echo preStop >>/work/log; usleep 500000; echo done >>/work/log') },
        ...SHARED.mount,
      };
      await lifepod.apply(pod('polite', { app: [app], spec: outliving('polite') }));
      await record.until('polite', isReady);
      await deletion('polite');
      expect(logOf('polite')).toBe('preStop\ndone\ngot TERM\n');
    });

    test('a preStop hook can use httpGet or sleep', async () => {
      await lifepod.apply(
        pod('asking', {
          app: [
            { name: 'http', script: WAIT, lifecycle: { preStop: ask('/stop') } },
            { name: 'sleep', script: WAIT, lifecycle: { preStop: { sleep: { seconds: 2 } } } },
          ],
        }),
      );
      await record.until('asking', isReady);
      const millis = await deletion('asking');
      expect(millis).toBeGreaterThanOrEqual(2000);
      expect(millis).toBeLessThan(20_000);
      expect(server.asked('/stop')).toHaveLength(1);
    });

    test('a preStop hook counts against the grace period, and a container gets at least 2 s after its stop signal', async () => {
      const app = { name: 'app', script: DEAF, lifecycle: { preStop: sh('sleep 600') } };
      await lifepod.apply(pod('endless', { app: [app], spec: { terminationGracePeriodSeconds: 2 } }));
      await record.until('endless', isReady);
      const millis = await deletion('endless');
      expect(millis).toBeGreaterThanOrEqual(3900);
      expect(millis).toBeLessThan(20_000);
    });

    test('a preStop hook that fails is reported and does not delay the deletion of the Pod', async () => {
      await lifepod.apply(
        pod('failing', { app: [{ name: 'app', script: WAIT, lifecycle: { preStop: sh('echo secret; exit 1') } }] }),
      );
      await record.until('failing', isReady);
      expect(await deletion('failing')).toBeLessThan(20_000);
      expect(await record.event('failing', /Hook/)).toBe('Warning FailedPreStopHook: PreStopHook failed');
      expect(record.events('failing').join()).not.toContain('secret');
    });

    test('no preStop hook runs for a container that has exited', async () => {
      await lifepod.apply(
        pod('over', {
          app: [
            { name: 'over', script: 'true', lifecycle: { preStop: ask('/over') } },
            { name: 'alive', script: WAIT, lifecycle: { preStop: ask('/alive') } },
          ],
          spec: { restartPolicy: 'Never' },
        }),
      );
      await record.until('over', (pod) => ended('over')(pod) && runs('alive')(pod));
      await deletion('over');
      expect(server.asked('/alive')).toHaveLength(1);
      expect(server.asked('/over')).toEqual([]);
    });

    test('a preStop hook runs before a container is stopped because its liveness probe failed', async () => {
      const app = {
        name: 'app',
        script: `[ -e /work/again ] && touch /tmp/healthy; touch /work/again; ${WAIT}`,
        lifecycle: { preStop: ask('/unwell') },
        livenessProbe: { ...sh('[ -e /tmp/healthy ]'), periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 10 },
        ...SHARED.mount,
      };
      await lifepod.apply(pod('unwell', { app: [app], spec: { volumes: SHARED.volumes } }));
      await record.until('unwell', restarted('app', 1));
      expect(server.asked('/unwell')).toHaveLength(1);
      await finished('unwell');
    });

    test('the preStop hook of a sidecar runs together with the hooks of the apps, but the sidecar is stopped after the apps', async () => {
      const app = {
        script: 'trap "echo $NAME >>/work/log; exit 0" TERM; while :; do sleep 3600 & wait $!; done',
        ...SHARED.mount,
      };
      await lifepod.apply(
        pod('beside', {
          init: [
            { ...app, name: 'pipe', script: 'mkfifo /work/pipe' },
            {
              ...app,
              name: 'side',
              env: [{ name: 'NAME', value: 'side' }],
              restartPolicy: 'Always',
              lifecycle: { preStop: sh('echo preStop >>/work/log; echo >/work/pipe') },
            },
          ],
          // The hook of the app waits for the hook of the sidecar, so both must run at the same time.
          app: [
            {
              ...app,
              name: 'app',
              env: [{ name: 'NAME', value: 'app' }],
              lifecycle: { preStop: sh('read line </work/pipe') },
            },
          ],
          spec: outliving('beside'),
        }),
      );
      await record.until('beside', isReady);
      await deletion('beside');
      expect(logOf('beside')).toBe('preStop\napp\nside\n');
    });
  });
});

import { expect } from 'vitest';
import { pod, WAIT } from '../support/manifests.ts';
import { lifepod, test } from '../support/shared-engine.ts';

const ready = (name: string): Promise<string> =>
  lifepod.kubectlOk('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=60s');
/** Resolves with milliseconds. */
async function timed(...args: string[]): Promise<number> {
  const begin = performance.now();
  await lifepod.kubectlOk(...args);
  return performance.now() - begin;
}
const DEAF = 'trap "echo got TERM" TERM; while :; do sleep 1; done';

test('each container of a deleted Pod gets SIGTERM, and the API object is deleted after the containers have exited', async () => {
  const polite = 'trap "echo got TERM; sleep 1; echo done; exit 0" TERM; while :; do sleep 3600 & wait $!; done';
  await lifepod.apply(
    pod('polite', {
      app: [
        { name: 'a', script: polite },
        { name: 'b', script: polite },
      ],
    }),
  );
  await ready('polite');
  const logs = ['a', 'b'].map((name) => lifepod.kubectlOk('logs', '-f', 'polite', '-c', name));
  const millis = await timed('delete', 'pod', 'polite');
  for (const log of logs) expect(await log).toBe('got TERM\ndone\n');
  expect(millis).toBeGreaterThanOrEqual(1000);
  expect(millis).toBeLessThan(10_000);
});

test('containers get SIGKILL at the end of the grace period of the Pod or of the delete request', async () => {
  await lifepod.apply(
    pod('deaf', { app: [{ name: 'app', script: DEAF }], spec: { terminationGracePeriodSeconds: 3 } }),
  );
  await lifepod.apply(pod('deaf-2', { app: [{ name: 'app', script: DEAF }] }));
  await ready('deaf');
  await ready('deaf-2');
  for (const args of [['deaf'], ['deaf-2', '--grace-period=3']]) {
    const millis = await timed('delete', 'pod', ...args);
    expect(millis).toBeGreaterThanOrEqual(2500);
    expect(millis).toBeLessThan(8000);
  }
});

test('a second delete request can shorten the grace period', async () => {
  await lifepod.apply(
    pod('shortened', { app: [{ name: 'app', script: DEAF }], spec: { terminationGracePeriodSeconds: 600 } }),
  );
  await ready('shortened');
  await lifepod.kubectlOk('delete', 'pod', 'shortened', '--wait=false');
  expect(await lifepod.kubectlOk('get', 'pod', 'shortened')).toMatch(/^shortened +1\/1 +Terminating /m);
  expect(await timed('delete', 'pod', 'shortened', '--grace-period=1')).toBeLessThan(10_000);
});

test('a deletion with --force --grace-period=0 removes the API object immediately, and the name can be used again', async () => {
  const marker = '31415926';
  await lifepod.apply(pod('forced', { app: [{ name: 'app', script: `trap "" TERM; sleep ${marker}` }] }));
  await ready('forced');
  const result = await lifepod.kubectl('delete', 'pod', 'forced', '--force', '--grace-period=0');
  expect(result.code).toBe(0);
  expect(result.stderr).toContain('Immediate deletion does not wait for confirmation');
  expect(result.stdout).toContain('pod "forced" force deleted');
  expect((await lifepod.kubectl('get', 'pod', 'forced')).stderr).toContain('not found');
  await lifepod.apply(pod('forced'));
  await ready('forced');
  await lifepod.kubectlOk('delete', 'pod', 'forced');
});

test('a finished Pod is deleted without waiting for its grace period', async () => {
  await lifepod.apply(
    pod('finished', {
      app: [{ name: 'app', script: 'true' }],
      spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 600 },
    }),
  );
  await lifepod.kubectlOk('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/finished', '--timeout=60s');
  expect(await timed('delete', 'pod', 'finished')).toBeLessThan(5000);
});

test('a Pod that is deleted while its init container runs does not start the next init container', async () => {
  await lifepod.apply(
    pod('interrupted', {
      init: [
        { name: 'first', script: WAIT },
        { name: 'second', script: 'echo must not run' },
      ],
    }),
  );
  await lifepod.kubectlOk(
    'wait',
    '--for=jsonpath={.status.initContainerStatuses[0].state.running}',
    'pod/interrupted',
    '--timeout=60s',
  );
  expect(await timed('delete', 'pod', 'interrupted')).toBeLessThan(10_000);
  const events = await lifepod.kubectlOk(
    'get',
    'events',
    '--field-selector=involvedObject.name=interrupted',
    '-o',
    'json',
  );
  expect(events).toContain('spec.initContainers{first}');
  expect(events).not.toContain('spec.initContainers{second}');
  expect(events).toContain('Stopping container first');
});

test('a Pod whose image cannot be pulled can be deleted', async () => {
  await lifepod.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'no-image' },
    spec: { containers: [{ name: 'app', image: 'localhost:1/none:1' }] },
  });
  const waiting = (line: string): boolean => /ErrImagePull|ImagePullBackOff/.test(line);
  await lifepod.until(['get', 'pod', 'no-image', '-w'], waiting);
  expect(await timed('delete', 'pod', 'no-image')).toBeLessThan(10_000);
});

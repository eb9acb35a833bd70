import { expect } from 'vitest';
import { pod, WAIT } from '../support/manifests.ts';
import { condition, inPhase, isReady, OOM_REASONS, statusOf, waitsFor } from '../support/pods.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

const sh = (script: string): object => ({ exec: { command: ['sh', '-c', script] } });
/** Exits with code 4 after the stop signal, so that a Pod that does not restart its containers fails. */
const STOPPED = 'trap "exit 4" TERM; while :; do sleep 3600 & wait $!; done';
const DEAF = { name: 'app', script: 'sleep 3600; true' };
const once = { restartPolicy: 'Never', terminationGracePeriodSeconds: 1 };
const bye = { name: 'bye', image: 'busybox:1.28', command: ['true'], timeoutSeconds: 5 };

const PODS = [
  pod('forced', { app: [{ name: 'app', script: WAIT }], spec: { deferContainers: [bye] } }),
  pod('deaf', { app: [DEAF], spec: { terminationGracePeriodSeconds: 600 } }),
  pod('sick', {
    app: [
      {
        name: 'app',
        script: STOPPED,
        livenessProbe: {
          ...sh('echo the lock is stale; exit 1'),
          periodSeconds: 1,
          failureThreshold: 1,
          timeoutSeconds: 30,
        },
      },
    ],
    spec: once,
  }),
  pod('hooked', {
    app: [{ name: 'app', script: STOPPED, lifecycle: { postStart: sh('echo no such queue >&2; exit 3') } }],
    spec: once,
  }),
  pod('greedy', {
    app: [{ name: 'app', script: 'exec tail /dev/zero', resources: { limits: { memory: '16Mi' } } }],
    spec: once,
  }),
  pod('huge', { app: [{ name: 'app', script: WAIT, resources: { requests: { cpu: '9000' } } }] }),
  pod('misnamed', { app: [{ name: 'app', script: WAIT, image: 'Busybox:1:2' }] }),
  pod('commandless', { app: [{ name: 'app', script: '', command: ['/opt/start'] }], spec: once }),
  pod('unset', { app: [{ name: 'app', script: WAIT, envFrom: [{ configMapRef: { name: 'settings' } }] }] }),
  pod('tuned', { spec: { securityContext: { sysctls: [{ name: 'net.core.somaxconn', value: '1024' }] } } }),
];

const why = (name: string): Promise<string> => lifepod.cliOk('why', name);

async function recorded(steps: Record<string, string>): Promise<void> {
  const columns = 'jsonpath={.podName} {.transitions[*].type}{"\\n"}';
  await lifepod.until(['get', 'podrecords', '-w', '-o', columns], (_, lines) =>
    Object.entries(steps).every(([name, step]) =>
      lines.some((line) => line.startsWith(`${name} `) && line.split(' ').includes(step)),
    ),
  );
}

test('lifepod why leads with the cause of each failure, and its hints keep the options of the command', async () => {
  const list = { apiVersion: 'v1', kind: 'List', items: PODS };
  const applied = await lifepod.kubectlInput(JSON.stringify(list), 'apply', '-f', '-');
  expect(applied.stderr).not.toContain('error');
  await Promise.all(['forced', 'deaf'].map((name) => record.until(name, isReady)));
  await lifepod.delete('pod', 'forced', '--force', '--grace-period=0');
  await lifepod.delete('pod', 'deaf', '--wait=false');
  await Promise.all([
    recorded({ forced: 'Removed', deaf: 'StopSignal', sick: 'Finished', hooked: 'Finished', commandless: 'Finished' }),
    record.until('greedy', inPhase('Failed')),
    record.until('tuned', inPhase('Failed')),
    record.until('huge', (each) => condition(each, 'PodScheduled')?.status === 'False'),
    record.until('misnamed', waitsFor('app', 'InvalidImageName')),
    record.until('unset', waitsFor('app', 'CreateContainerConfigError')),
  ]);

  const deaf = await why('deaf');
  // The Pod must not delay the end of the engine if the test fails.
  await lifepod.delete('pod', 'deaf', '--grace-period=1', '--wait=false');
  expect(deaf).toMatch(
    /^deaf is not gone yet: (PID 1 of container app has ignored its stop signal for|container app was just sent its stop signal).*it will be killed at/,
  );
  expect(await why('forced')).toMatch(
    /^forced has been gone since .* UTC: it was deleted by force, with a grace period of 0, so its defer container bye did not run\.\n/,
  );
  expect(await why('sick')).toMatch(
    /^sick has failed: the liveness probe of container app failed, the lock is stale\.\n/,
  );
  expect(await why('hooked')).toMatch(
    /^hooked has failed: the postStart hook of container app failed with exit code 3, no such queue\.\n/,
  );
  const greedy = statusOf(await record.until('greedy', inPhase('Failed')), 'app').state?.terminated?.reason ?? '';
  expect(greedy).toMatch(OOM_REASONS);
  expect(await why('greedy')).toMatch(
    greedy === 'OOMKilled'
      ? /^greedy has failed: container app was killed because it reached its memory limit of 16Mi\.\n/
      : /^greedy has failed: container app ended with code 137, perhaps because it reached its memory limit of 16Mi\.\n/,
  );
  expect(await why('huge')).toMatch(
    /^huge can never be scheduled: it requests 9k cpu, and the node node-1 has only \d+m? for all Pods together\.\n/,
  );
  expect(await why('misnamed')).toMatch(
    /^misnamed cannot start: "Busybox:1:2", the image of its container app, is not a valid image name\.\n/,
  );
  expect(await why('commandless')).toMatch(
    /^commandless has failed: container app cannot execute its command \/opt\/start: there is no such file in its image\.\n/,
  );
  expect(await why('unset')).toMatch(
    /^unset cannot start: container app needs the ConfigMap settings, which does not exist in namespace test-\S+\.\n/,
  );
  expect(await why('tuned')).toMatch(/^tuned has failed: its node node-1 forbids the sysctl net\.core\.somaxconn\.\n/);
  const found = JSON.parse(await lifepod.cliOk('why', 'unset', '-o', 'json'));
  const options = `--kubeconfig ${lifepod.dataDir}/kubeconfig`;
  expect(found).toMatchObject({
    pod: { name: 'unset', namespace: lifepod.namespace, exists: true },
    cause: expect.stringMatching(/^unset cannot start: /),
    actions: [
      { command: `kubectl create configmap settings -n ${lifepod.namespace} --from-literal=KEY=VALUE ${options}` },
    ],
  });
});

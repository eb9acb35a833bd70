/** The steps in examples/01-init-containers/README.md. */

import { join } from 'node:path';
import { expect } from 'vitest';
import { REPOSITORY } from '../support/lifepod.ts';
import { lifepod, testInFileNamespace as test } from '../support/shared-engine.ts';

const EXAMPLE = join(REPOSITORY, 'examples/01-init-containers');
const MYAPP = join(EXAMPLE, 'myapp.yaml');
const SERVICES = join(EXAMPLE, 'services.yaml');

test('kubectl apply -f creates the Pod, and get -f shows Init:0/2 from the server’s table', async () => {
  expect(await lifepod.kubectlOk('apply', '-f', MYAPP)).toBe('pod/myapp-pod created\n');
  const running = '--for=jsonpath={.status.initContainerStatuses[0].state.running}';
  await lifepod.kubectlOk('wait', running, 'pod/myapp-pod', '--timeout=60s');
  await lifepod.until(['logs', '-f', 'myapp-pod', '-c', 'init-myservice'], (line) =>
    line.includes('waiting for myservice'),
  );
  const lines = (await lifepod.kubectlOk('get', '-f', MYAPP)).trimEnd().split('\n');
  expect(lines[0]).toMatch(/^NAME +READY +STATUS +RESTARTS +AGE$/);
  expect(lines[1]).toMatch(/^myapp-pod +0\/1 +Init:0\/2 +0 +\d+s$/);
  const wide = await lifepod.kubectlOk('get', '-f', MYAPP, '-o', 'wide');
  expect(wide).toMatch(/^NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES$/m);
  expect(wide).toMatch(/ 10\.\d+\.\d+\.\d+ +node-1 +<none> +<none>$/m);
});

test('kubectl describe shows the init containers with their states, and the Events', async () => {
  const text = await lifepod.kubectlOk('describe', '-f', MYAPP);
  expect(text).toMatch(/^Name: +myapp-pod$/m);
  expect(text).toMatch(new RegExp(`^Namespace: +${lifepod.namespace}$`, 'm'));
  expect(text).toMatch(/^Node: +node-1\/\d+\.\d+\.\d+\.\d+$/m);
  expect(text).toMatch(/^Labels: +app\.kubernetes\.io\/name=MyApp$/m);
  expect(text).toMatch(/^Status: +Pending$/m);
  expect(text).toMatch(/Init Containers:\n {2}init-myservice:\n[\s\S]*? {4}State: +Running\n/);
  expect(text).toMatch(
    / {2}init-mydb:\n[\s\S]*? {4}State: +Waiting\n {6}Reason: +PodInitializing\n {4}Ready: +False\n/,
  );
  expect(text).toMatch(
    /\nContainers:\n {2}myapp-container:\n[\s\S]*? {4}State: +Waiting\n {6}Reason: +PodInitializing\n {4}Ready: +False\n/,
  );
  expect(text).toMatch(/Initialized +False/);
  expect(text).toMatch(/PodScheduled +True/);
  expect(text).toMatch(/Normal +Scheduled +\S+ +default-scheduler +Successfully assigned \S+\/myapp-pod to node-1/);
  expect(text).toMatch(/Normal +Pulled +\S+ +kubelet +Container image "busybox:1.28" already present on machine/);
  expect(text).toMatch(/Normal +Created +\S+ +kubelet +Created container: init-myservice/);
  expect(text).toMatch(/Normal +Started +\S+ +kubelet +Started container init-myservice/);
});

test('Events of a Pod name the node and the container', async () => {
  const { items } = await lifepod.get<{ items: Record<string, never>[] }>(
    'events',
    '--field-selector=involvedObject.name=myapp-pod,reason=Started',
  );
  expect(items).toHaveLength(1);
  expect(items[0]).toMatchObject({
    source: { component: 'kubelet', host: 'node-1' },
    involvedObject: { kind: 'Pod', namespace: lifepod.namespace, fieldPath: 'spec.initContainers{init-myservice}' },
    count: 1,
    type: 'Normal',
  });
  expect(await lifepod.kubectlOk('get', 'events')).toMatch(/^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n/);
});

test('after the Services are created, both init containers succeed in order, and the Pod becomes Ready', async () => {
  const shown = lifepod.until(['get', '-f', MYAPP, '-w'], (line) => /1\/1 +Running/.test(line));
  expect(await lifepod.kubectlOk('apply', '-f', SERVICES)).toBe('service/myservice created\nservice/mydb created\n');
  const statuses = (await shown).map((line) => line.split(/ +/)[2]).filter((status) => status !== 'STATUS');
  const distinct = statuses.filter((status, index) => status !== statuses[index - 1]);
  expect(distinct).toEqual(['Init:0/2', 'Init:1/2', 'PodInitializing', 'Running']);
  expect(await lifepod.kubectlOk('wait', '--for=condition=Ready', 'pod/myapp-pod', '--timeout=10s')).toBe(
    'pod/myapp-pod condition met\n',
  );
});

test('kubectl logs reads init containers and the app, with -f, --tail, --timestamps and --since', async () => {
  const log = (...args: string[]): Promise<string> => lifepod.kubectlOk('logs', 'myapp-pod', ...args);
  expect(await log('-c', 'init-myservice')).toMatch(
    /waiting for myservice\n[\s\S]*myservice\.[\w-]+\.svc\.cluster\.local/,
  );
  expect(await log('-c', 'init-mydb', '-f')).toContain(`mydb.${lifepod.namespace}.svc.cluster.local`);
  expect(await log()).toBe('The app is running!\n');
  expect(await log('-c', 'init-myservice', '--tail', '1')).toMatch(/^.*\n$/);
  expect(await log('--timestamps')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z The app is running!\n$/);
  expect(await log('--since', '1h')).toBe('The app is running!\n');
  expect(await log('--since-time', '2099-01-01T00:00:00Z')).toBe('');
  const previous = await lifepod.kubectl('logs', 'myapp-pod', '--previous');
  expect(previous.code).toBe(1);
  expect(previous.stderr).toContain('previous terminated container "myapp-container" in pod "myapp-pod" not found');
});

test('kubectl get -o yaml and -o json print the whole object', async () => {
  expect(await lifepod.kubectlOk('get', '-f', MYAPP, '-o', 'yaml')).toMatch(/^apiVersion: v1\nkind: Pod\nmetadata:\n/);
  const pod = await lifepod.get<{ status: Record<string, unknown>; spec: Record<string, unknown> }>('pod', 'myapp-pod');
  expect(pod.spec).toMatchObject({ nodeName: 'node-1', restartPolicy: 'Always', terminationGracePeriodSeconds: 30 });
  expect(pod.status).toMatchObject({
    phase: 'Running',
    initContainerStatuses: [
      {
        name: 'init-myservice',
        ready: true,
        restartCount: 0,
        state: { terminated: { exitCode: 0, reason: 'Completed' } },
      },
      { name: 'init-mydb', ready: true, restartCount: 0, state: { terminated: { exitCode: 0, reason: 'Completed' } } },
    ],
    containerStatuses: [{ name: 'myapp-container', ready: true, started: true, restartCount: 0 }],
  });
});

test('kubectl apply of an unchanged file leaves the Pod unchanged, and label, annotate and patch change the Pod', async () => {
  expect(await lifepod.kubectlOk('apply', '-f', MYAPP)).toBe('pod/myapp-pod unchanged\n');
  await lifepod.kubectlOk('label', 'pod', 'myapp-pod', 'tier=front');
  await lifepod.kubectlOk('annotate', 'pod', 'myapp-pod', 'note=seen');
  await lifepod.kubectlOk('patch', 'pod', 'myapp-pod', '-p', '{"metadata":{"labels":{"patched":"yes"}}}');
  await lifepod.kubectlOk(
    'patch',
    'pod',
    'myapp-pod',
    '--type=json',
    '-p',
    '[{"op":"remove","path":"/metadata/labels/tier"}]',
  );
  expect(await lifepod.kubectlOk('get', 'pods', '-l', 'patched=yes,!tier', '-o', 'name')).toBe('pod/myapp-pod\n');
});

test('kubectl delete waits until the Pod is deleted', async () => {
  const shown = lifepod.until(['get', 'pods', '-w', '--output-watch-events'], (line) => line.startsWith('DELETED'));
  const deleted = await lifepod.kubectlOk('delete', '-f', MYAPP, '--grace-period=3');
  expect(deleted).toBe('pod "myapp-pod" deleted\n');
  expect((await shown).some((line) => / Terminating /.test(line))).toBe(true);
  const gone = await lifepod.kubectl('get', '-f', MYAPP);
  expect(gone).toMatchObject({ code: 1, stderr: 'Error from server (NotFound): pods "myapp-pod" not found\n' });
  expect(await lifepod.kubectlOk('delete', '-f', SERVICES)).toMatch(/service "myservice" deleted/);
});

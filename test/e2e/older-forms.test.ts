/** Kubernetes 1.5 had init containers in annotations. */
import { expect } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { WAIT } from '../support/manifests.ts';
import { lifepod, test } from '../support/shared-engine.ts';

const BETA = 'pod.beta.kubernetes.io/init-containers';
const ALPHA = 'pod.alpha.kubernetes.io/init-containers';
const statusesOf = (key: string): string => key.replace('init-containers', 'init-container-statuses');

const waitFor = (name: string, what: string): Promise<void> => lifepod.wait(`--for=${what}`, `pod/${name}`);
const create = (manifest: string | object) =>
  lifepod.kubectlInput(typeof manifest === 'string' ? manifest : JSON.stringify(manifest), 'create', '-f', '-');

/** The example in the documentation of Kubernetes 1.5. Its quotes are corrected, because kubectl rejects the original YAML. */
const MYAPP = `
apiVersion: v1
kind: Pod
metadata:
  name: myapp-pod
  labels:
    app: myapp
  annotations:
    pod.beta.kubernetes.io/init-containers: '[
        {
            "name": "init-myservice",
            "image": "busybox:1.28",
            "command": ["sh", "-c", "until nslookup myservice.$(cat /var/run/secrets/kubernetes.io/serviceaccount/namespace).svc.cluster.local; do echo waiting for myservice; sleep 2; done"]
        },
        {
            "name": "init-mydb",
            "image": "busybox:1.28",
            "command": ["sh", "-c", "until nslookup mydb.$(cat /var/run/secrets/kubernetes.io/serviceaccount/namespace).svc.cluster.local; do echo waiting for mydb; sleep 2; done"]
        }
    ]'
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: myapp-container
    image: busybox:1.28
    command: ['sh', '-c', 'echo The app is running! && sleep 3600']
`;

const service = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { ports: [{ protocol: 'TCP', port: 80, targetPort: 9376 }] },
});

const annotated = (name: string, annotations: Record<string, string>, spec: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, annotations },
  spec: { containers: [{ name: 'app', image: 'busybox:1.28', command: ['sh', '-c', WAIT] }], ...spec },
});

test('init containers in the beta annotation cause a warning, run in order, have mirrored statuses, and are immutable', async () => {
  const created = await create(MYAPP);
  expect(created.stdout).toBe('pod/myapp-pod created\n');
  expect(created.stderr).toBe(
    `Warning: metadata.annotations[${BETA}]: deprecated since v1.6; use "spec.initContainers" instead\n`,
  );
  await waitFor('myapp-pod', 'jsonpath={.status.initContainerStatuses[0].state.running}');
  expect(await lifepod.kubectlOk('get', 'pod', 'myapp-pod')).toMatch(/^myapp-pod +0\/1 +Init:0\/2 +0 /m);
  expect(await lifepod.kubectlOk('describe', 'pod', 'myapp-pod')).toMatch(
    /Init Containers:\n {2}init-myservice:[\s\S]*Running[\s\S]*init-mydb:[\s\S]*PodInitializing[\s\S]*\nContainers:/,
  );
  await lifepod.until(['logs', 'myapp-pod', '-c', 'init-myservice', '-f'], (line) => line === 'waiting for myservice');

  await lifepod.apply(service('myservice'));
  await waitFor('myapp-pod', 'jsonpath={.status.initContainerStatuses[1].state.running}');
  const half = await lifepod.get<Pod>('pod', 'myapp-pod');
  const mirrored = (pod: Pod) => JSON.parse(pod.metadata.annotations?.[statusesOf(BETA)] ?? 'null');
  expect(mirrored(half)).toMatchObject([
    { name: 'init-myservice', state: { terminated: { exitCode: 0 } } },
    { name: 'init-mydb', state: { running: {} } },
  ]);

  await lifepod.apply(service('mydb'));
  await waitFor('myapp-pod', 'condition=Ready');
  const ready = await lifepod.get<Pod>('pod', 'myapp-pod');
  expect(mirrored(ready)).toEqual(ready.status?.initContainerStatuses);
  expect(ready.metadata.annotations).not.toHaveProperty(statusesOf(ALPHA));
  expect(await lifepod.kubectlOk('logs', 'myapp-pod')).toBe('The app is running!\n');

  const changed = await lifepod.kubectl('annotate', 'pod', 'myapp-pod', '--overwrite', `${BETA}=[]`);
  expect(changed.code).toBe(1);
  expect(changed.stderr).toContain(
    `metadata.annotations[${BETA}]: Forbidden: may not remove or update init container annotations`,
  );
  await lifepod.delete('pod', 'myapp-pod');
});

test('init containers in the alpha annotation run, and their statuses are mirrored in the alpha annotation for statuses', async () => {
  const containers = [{ name: 'one', image: 'busybox:1.28', command: ['sh', '-c', 'echo old'] }];
  expect((await create(annotated('alpha', { [ALPHA]: JSON.stringify(containers) }))).stderr).toContain(
    `Warning: metadata.annotations[${ALPHA}]: deprecated`,
  );
  await waitFor('alpha', 'condition=Ready');
  expect(await lifepod.kubectlOk('logs', 'alpha', '-c', 'one')).toBe('old\n');
  const { metadata, status } = await lifepod.get<Pod>('pod', 'alpha');
  expect(JSON.parse(metadata.annotations?.[statusesOf(ALPHA)] ?? '')).toEqual(status?.initContainerStatuses);
  await lifepod.delete('pod', 'alpha', '--now');
});

test('an init container annotation is rejected if it is invalid or contradicts spec.initContainers', async () => {
  const single = "[{'name': 'a', 'image': 'busybox:1.28'}]";
  const bad = await create(annotated('bad', { [BETA]: single }));
  expect(bad.code).toBe(1);
  expect(bad.stderr).toContain(`The Pod "bad" is invalid: metadata.annotations[${BETA}]: Invalid value: `);

  const other = { initContainers: [{ name: 'b', image: 'busybox:1.28' }] };
  const both = await create(annotated('both', { [BETA]: single.replaceAll("'", '"') }, other));
  expect(both.code).toBe(1);
  expect(both.stderr).toContain('must be equal to spec.initContainers if both are set');
});

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Container, Pod } from '../../src/api/generated/types.ts';
import { SERVICES } from '../../src/api/resources.ts';
import { registryBackend, withInformers } from '../../src/client/registry-fixture.ts';
import { clientOf } from '../../src/client/typed-client.ts';
import type { KubeObject } from '../../src/machinery/meta.ts';
import { startTestDns } from '../../src/network/dns/dns-fixture.ts';
import { setUpNetwork } from '../../src/network/pod-network/pod-network.ts';
import { tearDownNetwork } from '../../src/network/pod-network/tear-down.ts';
import { createEnvironmentSource } from '../../src/node/container/configuration-source.ts';
import { containerConfig, sandboxConfig, terminationMessageFile } from '../../src/node/container/container-config.ts';
import { prepareContainer, prepareSandbox } from '../../src/node/container/container-files.ts';
import { readTerminationMessage } from '../../src/node/container/termination-message.ts';
import { readContainerLog } from '../../src/node/logs/log-source.ts';
import { unmountUnder } from '../../src/node/volumes/mounts.ts';
import { createPodMemory } from '../../src/node/volumes/pod-memory.ts';
import { createVolumeManager, type VolumeManager } from '../../src/node/volumes/volume-manager.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import { silentLog } from '../../src/platform/silent-log.ts';
import { startContainerd } from '../../src/runtime/containerd/containerd.ts';
import { connectRuntime } from '../../src/runtime/cri/cri-runtime.ts';
import type { ContainerRuntime } from '../../src/runtime/runtime.ts';
import { BUSYBOX, loadImages, quiet, type Scratch, scratch } from './containerd-fixture.ts';

const controller = new AbortController();
const { signal } = controller;
const backend = await registryBackend({ namespaces: ['ns1'], serviceCidr: '10.217.77.0/24' });
const client = clientOf(backend);
const timers = systemTimers();
const cleanups: (() => Promise<unknown>)[] = [];

let where: Scratch;
let runtime: ContainerRuntime;
let volumes: VolumeManager;
let network: Parameters<typeof setUpNetwork>[0];
let sandboxIps: readonly string[] = [];
let run: (container: Container, attempt: number) => Promise<string>;
let sandboxId: string;

const script = `
until nslookup myservice.$(cat /var/run/secrets/kubernetes.io/serviceaccount/namespace).svc.cluster.local >/dev/null; do echo waiting; sleep 0.1; done
echo "token $(cat /var/run/secrets/kubernetes.io/serviceaccount/token)"
touch /var/run/secrets/kubernetes.io/serviceaccount/x 2>/dev/null && echo WRITABLE
echo "hostname $(hostname) from $HOST_OF_SERVICE"
grep web-0 /etc/hosts
cat /etc/resolv.conf
echo "user $(id -u) groups $(id -G)"
echo kept > /data/file
echo "done" > /dev/termination-log
exit 3
`;

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-0', namespace: 'ns1', uid: 'uid-of-web-0' },
  spec: {
    serviceAccountName: 'default',
    securityContext: { fsGroup: 2000, runAsUser: 1234, runAsGroup: 1234 },
    volumes: [
      {
        name: 'account',
        projected: {
          sources: [
            { serviceAccountToken: { path: 'token' } },
            { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
          ],
        },
      },
      { name: 'data', emptyDir: {} },
    ],
    containers: [
      {
        name: 'app',
        image: BUSYBOX,
        command: ['sh', '-c', script],
        env: [{ name: 'HOST_OF_SERVICE', value: '$(KUBERNETES_SERVICE_HOST)' }],
        terminationMessagePath: '/dev/termination-log',
        resources: { limits: { memory: '64Mi', cpu: '500m' } },
        securityContext: { allowPrivilegeEscalation: false, runAsNonRoot: true, capabilities: { drop: ['ALL'] } },
        volumeMounts: [
          { name: 'account', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true },
          { name: 'data', mountPath: '/data', subPath: 'of/web' },
        ],
      },
    ],
  },
};
const app = pod.spec?.containers[0] as Container;

const service = (namespace: string, name: string, clusterIP: string): KubeObject =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace },
    spec: { clusterIP, ports: [{ port: 443, name: 'https' }] },
  }) as KubeObject;

beforeAll(async () => {
  const create = backend.create.bind(backend);
  backend.create = (ref, namespace, object, options) =>
    options?.subresource === 'token'
      ? Promise.resolve({ ...object, status: { token: 'a-token' } } as KubeObject)
      : create(ref, namespace, object, options);
  where = scratch();
  cleanups.push(() => where.remove());
  network = {
    dataDir: where.dataDir,
    instance: where.dataDir,
    podCidr: '10.216.77.0/24',
    serviceIps: ['10.217.77.10', '10.217.77.1'],
    pluginDirectory: '/usr/lib/cni',
    timers,
    log: silentLog,
    signal,
  };
  const { cniConfigDirectory } = await setUpNetwork(network);
  cleanups.push(() =>
    tearDownNetwork({ ...network, runtimeFolder: network.dataDir, signal: new AbortController().signal }),
  );
  const containerd = await startContainerd({ ...where.options, cniConfDir: cniConfigDirectory });
  cleanups.push(() => containerd.shutdown());
  await loadImages(where, containerd.endpoint);
  runtime = await connectRuntime({ endpoint: containerd.endpoint, log: quiet, timers });
  cleanups.push(() => runtime.close());
  const dns = await startTestDns(client, { addresses: network.serviceIps.slice(0, 1), port: 53 });
  cleanups.push(() => dns.remove());
  volumes = createVolumeManager(
    withInformers({
      rootDirectory: join(where.dataDir, 'pods'),
      memory: createPodMemory(join(where.dataDir, 'pods-memory'), signal),
      client,
      timers,
      log: silentLog,
      nodeName: 'n1',
    }),
  );
  cleanups.push(async () => {
    volumes.close();
    await unmountUnder(where.dataDir, new AbortController().signal);
  });
  const environment = createEnvironmentSource({
    client,
    nodeName: 'n1',
    hostIps: ['192.0.2.2'],
    allocatable: {},
    memoryCapacityBytes: 2 ** 30,
    clusterDns: network.serviceIps.slice(0, 1),
    clusterDomain: 'cluster.local',
    resolvConf: '/dev/null',
    logsRoot: join(where.dataDir, 'logs'),
    seccompRoot: join(where.dataDir, 'seccomp'),
    services: { synced: Promise.resolve(), list: () => [service('default', 'kubernetes', '10.217.77.1') as never] },
    isStatic: () => false,
    podIps: () => sandboxIps,
    podDirectory: volumes.podDirectory,
    volumePath: volumes.hostPath,
  });

  await volumes.mount(pod, signal);
  const config = sandboxConfig(pod, 0, await environment(pod, undefined, signal));
  prepareSandbox(config);
  sandboxId = await runtime.runSandbox(config, signal);
  cleanups.push(async () => {
    await runtime.stopSandbox(sandboxId, new AbortController().signal);
    await runtime.removeSandbox(sandboxId, new AbortController().signal);
  });
  sandboxIps = (await runtime.observe('uid-of-web-0', signal)).sandboxes[0]?.ips ?? [];
  const image = await runtime.imageStatus(BUSYBOX, signal);
  if (image === undefined) throw new Error('no image');
  run = async (container, attempt) => {
    const env = await environment(pod, container, signal);
    await prepareContainer(pod, container, attempt, env, signal);
    const wanted = containerConfig(pod, container, 'app', attempt, 0, image, env);
    const id = await runtime.createContainer(sandboxId, config, wanted, signal);
    await runtime.startContainer(id, signal);
    return id;
  };
});
afterAll(async () => {
  controller.abort();
  for (const clean of cleanups.reverse()) await clean();
});

async function exited(id: string): Promise<number> {
  const done = Promise.withResolvers<number>();
  const stop = new AbortController();
  const look = async (): Promise<void> => {
    const found = (await runtime.observe('uid-of-web-0', signal)).containers.find((each) => each.id === id);
    if (found?.state === 'exited') done.resolve(found.exitCode ?? -1);
  };
  void runtime.events(() => void look().catch(done.reject), stop.signal);
  await look();
  return done.promise.finally(() => stop.abort());
}
const logPath = (name: string, attempt: number): string =>
  join(where.dataDir, 'logs', 'ns1_web-0_uid-of-web-0', name, `${attempt}.log`);

describe('a container', () => {
  it('a container waits for a Service, sees its files and names, and leaves a termination message', async () => {
    const id = await run(app, 0);
    const ended = exited(id);
    const log = readContainerLog(
      { path: logPath('app', 0), ended: ended.then(() => undefined) },
      { follow: true },
      signal,
    );
    let text = '';
    for await (const chunk of log) {
      text += Buffer.from(chunk).toString();
      const isCreated = backend.objects(SERVICES).some(({ metadata }) => metadata.name === 'myservice');
      if (text.startsWith('waiting') && !isCreated) {
        await backend.set(SERVICES, service('ns1', 'myservice', '10.217.77.20'));
      }
    }
    expect(await ended).toBe(3);
    const lines = text.split('\n').filter((line) => line !== 'waiting' && line !== '');
    expect(lines).toEqual([
      'token a-token',
      'hostname web-0 from 10.217.77.1',
      `${sandboxIps[0]}\tweb-0`,
      expect.stringMatching(/^search ns1\.svc\.cluster\.local svc\.cluster\.local cluster\.local/),
      'nameserver 10.217.77.10',
      expect.stringMatching(/^options ndots:5/),
      'user 1234 groups 1234 2000',
    ]);
    expect(sandboxIps[0]).toMatch(/^10\.216\.77\./);
    const file = terminationMessageFile(volumes.podDirectory('uid-of-web-0'), 'app', 0);
    const output = { logFile: logPath('app', 0), logEnded: async () => undefined };
    const message = { file, ...output, policy: 'File', exitCode: 3 };
    expect(await readTerminationMessage(message, signal)).toBe('done\n');
    expect(existsSync(join(volumes.hostPath('uid-of-web-0', pod, 'data'), 'of/web/file'))).toBe(true);
  });
});

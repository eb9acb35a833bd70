import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Endpoints, Pod, Service } from '../../../src/api/generated/types.ts';
import { cgroupRootOf } from '../../../src/node/resources/pod-cgroups.ts';
import { findProgram } from '../../../src/platform/processes.ts';
import { readRuntimeConfig } from '../../../src/runtime/cri/runtime-config.ts';
import { writeImageArchive } from '../../../src/runtime/images/archive-writer.ts';
import type { ContainerConfig } from '../../../src/runtime/runtime.ts';
import { type RealRuntime, startRealRuntime } from '../../integration/containerd-fixture.ts';
import { containerGroup, groupExists, limitsOf, podGroup } from '../../support/control-groups.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { createNeighbor } from '../../support/neighbor.ts';
import { lifepod, record, recordAgain, useOwnEngine } from '../../support/own-engine.ts';
import { isReady, statusOf } from '../../support/pods.ts';
import { type Registry, startHalfwayGate, startRegistry } from '../../support/registry.ts';

let machine: RealRuntime;
let registry: Registry;
afterAll(async () => {
  await registry?.stop();
  await machine?.close();
});
useOwnEngine(async () => {
  machine = await startRealRuntime();
  registry = await startRegistry(join(machine.where.dataDir, 'registry'));
  const runtime = ['--container-runtime-endpoint', machine.containerd.endpoint];
  const resolvConf = join(machine.where.dataDir, 'resolv.conf');
  writeFileSync(resolvConf, 'nameserver 192.0.2.53\nsearch node.example\n');
  const options = [...runtime, '--max-parallel-image-pulls', '2', '--resolv-conf', resolvConf];
  return { options };
});

const deadline = (): AbortSignal => AbortSignal.timeout(30_000);
/** The image has a shell, and a file of `ballastBytes` random bytes. Resolves with the path of the archive. */
async function archiveOf(reference: string, ballastBytes = 0): Promise<string> {
  const archive = join(machine.where.dataDir, 'image.tar');
  const file = (path: string, content: Buffer) => ({ type: 'file', path, mode: 0o755, content }) as const;
  const shell = [
    { type: 'directory', path: 'bin/', mode: 0o755 } as const,
    file('bin/sh', readFileSync(findProgram('busybox') ?? '')),
  ];
  const files = ballastBytes === 0 ? shell : [...shell, file('ballast', randomBytes(ballastBytes))];
  await writeImageArchive(archive, reference, files, { env: [`NAME=${reference}`, 'PATH=/bin'] });
  return archive;
}

test("Pods in the machine's containerd run in their own control groups with their limits", async () => {
  const config = await readRuntimeConfig(machine.containerd.endpoint, deadline());
  expect(config).toEqual({ cgroupDriver: 'cgroupfs', sandboxImage: machine.where.options.sandboxImage });
  const resources = { limits: { cpu: '100m', memory: '32Mi' } };
  await lifepod.apply(pod('guest', { app: [{ name: 'app', script: WAIT, resources }] }));
  const ready = await record.until('guest', isReady);
  const memoryBytes = String(32 * 1024 * 1024);
  expect(limitsOf(podGroup(lifepod.dataDir, ready))).toMatchObject({ quotaMicros: '10000', memoryBytes });
  expect(limitsOf(containerGroup(lifepod.dataDir, ready, 'app'))).toMatchObject({ memoryBytes });
  expect(await lifepod.kubectlOk('exec', 'guest', '--', 'echo', 'hello')).toBe('hello\n');
});

test("Pods in the network of the machine's containerd reach the API, and other machines do not", async () => {
  const { subsets } = await lifepod.get<Endpoints>('endpoints', 'kubernetes');
  const [{ addresses, ports } = {}] = subsets ?? [];
  const [gateway = '', port = 0] = [addresses?.[0]?.ip, ports?.[0]?.port];
  const { spec } = await lifepod.get<Service>('service', 'kubernetes');
  await lifepod.apply(pod('in-cluster'));
  await record.until('in-cluster', isReady);
  const script = `nc -w 5 ${spec?.clusterIP} 443 </dev/null && nc -w 5 ${gateway} ${port} </dev/null`;
  await expect
    .poll(async () => (await lifepod.kubectl('exec', 'in-cluster', '--', 'sh', '-c', script)).code, { timeout: 20_000 })
    .toBe(0);
  await using neighbor = await createNeighbor();
  const refused = await neighbor.run('busybox', 'nc', '-w', '3', gateway, String(port));
  expect(refused.code).not.toBe(0);
});

test('Pods with dnsPolicy Default use the resolver configuration that --resolv-conf names', async () => {
  await lifepod.apply(pod('resolving', { spec: { dnsPolicy: 'Default' } }));
  await record.until('resolving', isReady);
  expect(await lifepod.kubectlOk('exec', 'resolving', '--', 'cat', '/etc/resolv.conf')).toBe(
    'search node.example\nnameserver 192.0.2.53\n',
  );
});

test("a RuntimeClass can name a handler of the machine's containerd", async () => {
  const metadata = { name: 'usual' };
  await lifepod.apply({ apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata, handler: 'runc' });
  await lifepod.apply(pod('classy', { spec: { runtimeClassName: 'usual' } }));
  await record.until('classy', isReady);
});

test('lifepod image loads, lists and removes images, but does not remove the sandbox image or images of other programs', async () => {
  const [gone, foreign] = ['example.com/gone:1', 'example.com/foreign:1'];
  for (const reference of [gone, foreign]) await lifepod.cliOk('image', 'load', await archiveOf(reference));
  expect(await lifepod.cliOk('image', 'list')).toMatch(/^example\.com\/gone:1 +[0-9a-f]{12} +[\d.]+ MiB +0$/m);
  expect(await lifepod.cliOk('image', 'rm', gone)).toBe(`removed ${gone}\n`);
  expect(await lifepod.cliOk('image', 'list')).not.toContain(gone);
  const refused = async (reference: string): Promise<string> => (await lifepod.cli('image', 'rm', reference)).stderr;
  const { sandboxImage } = machine.where.options;
  expect(await refused(sandboxImage)).toBe(
    `lifepod: the image ${sandboxImage} cannot be removed: the sandbox of every Pod uses it\n`,
  );

  const owner = { uid: 'u-foreign', namespace: 'other', name: 'foreign' };
  const sandbox = {
    pod: owner,
    attempt: 0,
    hostname: 'foreign',
    logDirectory: machine.where.logDirectory,
    labels: {},
    annotations: {},
  };
  const id = await machine.runtime.runSandbox(sandbox, deadline());
  const imageId = (await machine.runtime.imageStatus(foreign, deadline()))?.id ?? '';
  const container: ContainerConfig = {
    pod: owner,
    name: 'app',
    kind: 'app',
    attempt: 0,
    imageId,
    imageName: foreign,
    command: ['sh'],
    env: [],
    mounts: [],
    logPath: 'app.log',
    annotations: {},
    resources: {},
    security: {},
  };
  await machine.runtime.createContainer(id, sandbox, container, deadline());
  expect(await refused(foreign)).toBe(
    `lifepod: the image ${foreign} is used by containers of other programs: remove them first\n`,
  );
  await machine.runtime.stopSandbox(id, deadline());
  await machine.runtime.removeSandbox(id, deadline());
  expect(await lifepod.cliOk('image', 'rm', foreign)).toBe(`removed ${foreign}\n`);
});

test('--max-parallel-image-pulls limits the number of parallel pulls, and the next pull waits', async () => {
  const names = ['one', 'two'];
  for (const name of names)
    await registry.push(await archiveOf(`example.com/${name}:1`, 4 * 2 ** 20), `team/${name}:1`);
  const gate = await startHalfwayGate(registry.host);
  try {
    const of = (name: string, host: string): object =>
      pod(name, {
        app: [{ name: 'app', script: 'while :; do read x; done', image: `${host}/team/${name}:1`, stdin: true }],
      });
    const message = ({ status }: Pod): string => status?.containerStatuses?.[0]?.state?.waiting?.message ?? '';
    for (const name of names) await lifepod.apply(of(name, gate.host));
    for (const name of names) await record.until(name, (seen) => /": (2[5-9]|[34]\d|50)% of /.test(message(seen)));
    await lifepod.apply(of('three', registry.host));
    const wanted = `Waiting for other pulls before image "${registry.host}/team/three:1"`;
    await record.until('three', (seen) => message(seen) === wanted);
    gate.open();
    await Promise.all(names.map((name) => record.until(name, isReady)));
  } finally {
    await gate.stop();
  }
  await lifepod.delete('pod', 'one', 'two', 'three', '--force');
});

test('an engine that restarts without options uses the same runtime and keeps the containers, and no start changes the runtime meanwhile', async () => {
  const before = statusOf(record.now('guest'), 'app').containerID;
  const change = async (...options: string[]): Promise<void> => {
    const { code, stderr } = await lifepod.cli('up', ...options, '--container-runtime-endpoint', '');
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        /^lifepod: \d+ Pods of \S+ run in the runtime at unix:\/\/\S+, and another runtime would run them a second time: end them first with '.*lifepod down --data-dir \S+', or omit --container-runtime-endpoint\n$/,
      ),
    });
  };
  await change('--detach');
  await lifepod.kill('SIGKILL');
  await change();
  await change('--detach');
  await lifepod.up([]);
  await recordAgain();
  const after = statusOf(await record.until('guest', isReady), 'app');
  expect([after.containerID, after.restartCount]).toEqual([before, 0]);
  expect(await lifepod.kubectlOk('exec', 'guest', '--', 'echo', 'hello')).toBe('hello\n');
});

test("lifepod down removes all sandboxes and control groups of its Pods from the machine's runtime", async () => {
  record.end();
  await lifepod.cliOk('down');
  expect((await machine.runtime.observeAll(deadline())).size).toBe(0);
  expect(groupExists(cgroupRootOf(lifepod.dataDir))).toBe(false);
});

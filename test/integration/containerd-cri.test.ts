import { createSocket } from 'node:dgram';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import dnsPacket from 'dns-packet';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { runCommandOk } from '../../src/platform/processes.ts';
import { connectRuntime } from '../../src/runtime/cri/cri-runtime.ts';
import { loadImageArchives } from '../../src/runtime/images/load.ts';
import { makeBusyboxArchive } from '../../src/runtime/images/local-images.ts';
import type { ContainerConfig, ContainerObservation, SandboxConfig } from '../../src/runtime/runtime.ts';
import { startRegistry } from '../support/registry.ts';
import { BUSYBOX, quiet, type RealRuntime, startRealRuntime } from './containerd-fixture.ts';

const never = new AbortController().signal;
let real: RealRuntime;
const end = new AbortController();
let events: Promise<void>;
let serial = 0;
beforeAll(async () => {
  real = await startRealRuntime();
  // logEnded() needs the events of the runtime, so the tests follow them.
  events = real.runtime.events(() => undefined, end.signal);
});
afterAll(async () => {
  end.abort();
  await events;
  await real?.close();
});
afterEach(async () => {
  for (const { sandboxes, containers } of (await real.runtime.observeAll(never)).values()) {
    for (const { id } of sandboxes) await real.runtime.stopSandbox(id, never);
    for (const { id } of containers) await real.runtime.removeContainer(id, never);
    for (const { id } of sandboxes) await real.runtime.removeSandbox(id, never);
  }
});

function newSandbox(extra: Partial<SandboxConfig> = {}): SandboxConfig {
  const uid = `uid-${++serial}`;
  return {
    pod: { uid, namespace: 'default', name: `pod-${serial}` },
    attempt: 0,
    hostname: `host-${serial}`,
    logDirectory: real.where.logDirectory,
    labels: {},
    annotations: {},
    ...extra,
  };
}

interface Prepared {
  sandbox: SandboxConfig;
  sandboxId: string;
  id: string;
}

async function prepare(
  command: string[],
  extra: Partial<ContainerConfig> = {},
  sandbox = newSandbox(),
): Promise<Prepared> {
  const sandboxId = await real.runtime.runSandbox(sandbox, never);
  const image = await real.runtime.imageStatus(BUSYBOX, never);
  const config: ContainerConfig = {
    pod: sandbox.pod,
    name: 'main',
    kind: 'app',
    attempt: 0,
    imageId: image?.id ?? '',
    imageName: BUSYBOX,
    command,
    env: [],
    mounts: [],
    logPath: `${sandbox.pod.uid}.log`,
    annotations: {},
    resources: {},
    security: {},
    ...extra,
  };
  return { sandbox, sandboxId, id: await real.runtime.createContainer(sandboxId, sandbox, config, never) };
}

async function finish({ sandbox, id }: Prepared): Promise<ContainerObservation> {
  const end = new AbortController();
  const { promise, resolve, reject } = Promise.withResolvers<ContainerObservation>();
  const look = (): void => {
    real.runtime.observe(sandbox.pod.uid, never).then(({ containers }) => {
      const found = containers.find((container) => container.id === id);
      if (found?.state === 'exited') resolve(found);
    }, reject);
  };
  const events = real.runtime.events(look, end.signal);
  await real.runtime.startContainer(id, never);
  look();
  try {
    return await promise;
  } finally {
    end.abort();
    await events;
  }
}

async function wholeLog(prepared: Prepared): Promise<string> {
  await finish(prepared);
  await real.runtime.logEnded?.(prepared.id, never);
  return readFileSync(join(real.where.logDirectory, `${prepared.sandbox.pod.uid}.log`), 'utf8');
}

async function output(prepared: Prepared): Promise<string> {
  const log = await wholeLog(prepared);
  return log.replace(/^\S+ (stdout|stderr) [FP] /gm, '').trim();
}

describe('a container', () => {
  test('the log of a container has the CRI format', async () => {
    const log = await wholeLog(await prepare(['sh', '-c', 'echo out; echo err >&2']));
    expect(log).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d) stdout F out$/m);
    expect(log).toMatch(/^\S+ stderr F err$/m);
  });

  test('the log of a container that has ended contains all of its output, although the exit may be observed before', async () => {
    // This output fits into the pipe to the runtime, so the container can end before the runtime has read it.
    const command = ['sh', '-c', 'head -c 3000 /dev/zero | tr "\\0" "\\n"; echo end'];
    for (let round = 0; round < 5; round++) expect(await wholeLog(await prepare(command))).toMatch(/ stdout F end\n$/);
  });

  test('a container whose program does not exist fails to start, with the reason', async () => {
    const prepared = await prepare(['/no/such/program']);
    await expect(real.runtime.startContainer(prepared.id, never)).rejects.toThrow(
      /rpc error: code = \w+ desc = .*no such file or directory/s,
    );
    const { containers } = await real.runtime.observe(prepared.sandbox.pod.uid, never);
    expect(containers).toMatchObject([{ state: 'exited', reason: 'StartError', exitCode: 128 }]);
    expect(containers[0]?.message).toContain('no such file or directory');
    expect(containers[0]?.startedAt).toBeUndefined();
    await expect(real.runtime.startContainer(prepared.id, never)).rejects.toThrow();
  });

  test('an exited container and its sandbox can be stopped at the same time', async () => {
    for (let round = 0; round < 5; round++) {
      const prepared = await prepare(['true']);
      await finish(prepared);
      await Promise.all([
        real.runtime.stopContainer(prepared.id, 1, never),
        real.runtime.stopSandbox(prepared.sandboxId, never),
      ]);
    }
  });

  test('a container that exceeds its memory limit is OOMKilled', async () => {
    // A lower limit would not be enough for runc itself.
    const prepared = await prepare(['sh', '-c', 'exec tail /dev/zero'], { resources: { memoryLimitBytes: 64 << 20 } });
    let ended = await finish(prepared);
    // The kernel may report the OOM kill after the exit, as an event of its own.
    const end = new AbortController();
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = async (): Promise<void> => {
      ended = (await real.runtime.observe(prepared.sandbox.pod.uid, never)).containers[0] ?? ended;
      if (ended.reason === 'OOMKilled') resolve();
    };
    const events = real.runtime.events(() => void look(), end.signal);
    await look();
    await promise;
    end.abort();
    await events;
    expect(ended).toMatchObject({ exitCode: 137, reason: 'OOMKilled' });
  });

  test('a container has the configured environment, working directory, mounts and user', async () => {
    const volume = join(real.where.dataDir, 'volume');
    mkdirSync(volume);
    writeFileSync(join(volume, 'greeting'), 'hello');
    const prepared = await prepare(
      ['sh', '-c', 'echo $NAME; pwd; id -u; id -g; id -G; cat /data/greeting; echo; touch /data/x 2>&1'],
      {
        env: [{ name: 'NAME', value: 'value with spaces' }],
        workingDir: '/var',
        mounts: [{ hostPath: volume, containerPath: '/data', readOnly: true }],
        security: { runAsUser: 1000, runAsGroup: 2000, supplementalGroups: [3000] },
      },
    );
    expect((await output(prepared)).split('\n')).toEqual([
      'value with spaces',
      '/var',
      '1000',
      '2000',
      '2000 3000',
      'hello',
      'touch: /data/x: Read-only file system',
    ]);
  });

  test('only a privileged container can write to /proc/sys or gain privileges', async () => {
    const command = [
      'sh',
      '-c',
      'echo x > /proc/sys/kernel/domainname && echo written; grep -E "CapEff|NoNewPrivs|Seccomp:" /proc/self/status',
    ];
    const confined = await prepare(command, {
      security: { noNewPrivileges: true, dropCapabilities: ['ALL'], seccomp: { type: 'RuntimeDefault' } },
    });
    const text = await output(confined);
    expect(text).toContain('Read-only file system');
    expect(text).toMatch(/CapEff:\s+0+$/m);
    expect(text).toMatch(/NoNewPrivs:\s+1/);
    expect(text).toMatch(/Seccomp:\s+2/);
    const privileged = await prepare(
      ['sh', '-c', 'test -w /proc/sys/kernel/domainname && echo writable'],
      {
        security: { privileged: true },
      },
      newSandbox({ privileged: true }),
    );
    expect(await output(privileged)).toBe('writable');
  });

  test('a container resolves names with the DNS settings of its sandbox', async () => {
    const asked: string[] = [];
    // The first sandbox creates the bridge and its address, on which the server listens.
    await real.runtime.runSandbox(newSandbox(), never);
    const server = createSocket('udp4', (message, from) => {
      const query = dnsPacket.decode(message);
      const question = query.questions?.[0];
      if (question === undefined) return;
      asked.push(`${question.type} ${question.name}`);
      const known = question.name === 'web.default.svc.cluster.local';
      server.send(
        dnsPacket.encode({
          type: 'response',
          id: query.id ?? 0,
          flags: dnsPacket.AUTHORITATIVE_ANSWER | (known ? 0 : 3),
          questions: query.questions ?? [],
          answers: known && question.type === 'A' ? [{ type: 'A', name: question.name, data: '10.9.8.7', ttl: 5 }] : [],
        }),
        from.port,
        from.address,
      );
    });
    await new Promise<void>((resolve) => server.bind(53, real.where.gateway, resolve));
    const dns = {
      servers: [real.where.gateway],
      searches: ['default.svc.cluster.local', 'svc.cluster.local'],
      options: ['ndots:5'],
    };
    try {
      for (const command of [
        ['nslookup', 'web'],
        ['nslookup', 'web.default.svc.cluster.local'],
        ['ping', '-c', '1', '-W', '1', 'web'],
      ]) {
        const text = await output(await prepare(command, {}, newSandbox({ dns })));
        expect(text, `${command.join(' ')}; asked: ${asked.join(', ')}`).toContain('10.9.8.7');
      }
      const failed = await finish(await prepare(['nslookup', 'absent'], {}, newSandbox({ dns })));
      expect(failed.exitCode).not.toBe(0);
    } finally {
      server.close();
    }
  });
});

describe('observation', () => {
  test('sandboxes are observed even if a response of the runtime is larger than 16 MiB', async () => {
    const annotations = { note: 'x'.repeat(6 * 1024 * 1024) };
    const pods = [1, 2, 3].map(() => newSandbox({ annotations }));
    for (const pod of pods) await real.runtime.runSandbox(pod, never);
    const observed = await real.runtime.observeAll(never);
    expect([...observed.keys()].sort()).toEqual(pods.map(({ pod: { uid } }) => uid).sort());
  });

  test("two engines on one runtime do not see each other's Pods", async () => {
    const timers = real.where.options.timers;
    const endpoint = real.containerd.endpoint;
    const [one, two] = await Promise.all(
      ['one', 'two'].map((instance) =>
        connectRuntime({ endpoint, log: quiet, timers, namespaceLabels: { 'lifepod.io/instance': instance } }),
      ),
    );
    const sandbox = newSandbox();
    await one?.runSandbox(sandbox, never);
    expect((await one?.observeAll(never))?.size).toBe(1);
    expect((await two?.observeAll(never))?.size).toBe(0);
    expect(await two?.observe(sandbox.pod.uid, never)).toEqual({ sandboxes: [], containers: [] });
    await Promise.all([one?.close(), two?.close()]);
  });
});

describe('images', () => {
  const load = (file: string): Promise<string[]> =>
    loadImageArchives({ endpoint: real.containerd.endpoint, timers: real.where.options.timers }, [file], never);
  const path = (name: string): string => join(real.where.dataDir, name);

  test('image archives made on one machine are identical byte for byte', async () => {
    await makeBusyboxArchive(path('a.tar'), { reference: 'example.com/same:1' });
    await makeBusyboxArchive(path('b.tar'), { reference: 'example.com/same:1' });
    expect(readFileSync(path('a.tar')).equals(readFileSync(path('b.tar')))).toBe(true);
  });

  test('images load from a compressed docker save archive', async () => {
    await makeBusyboxArchive(path('plain.tar'), { reference: 'example.com/compressed:1' });
    writeFileSync(path('compressed.tar.gz'), gzipSync(readFileSync(path('plain.tar'))));
    expect(await load(path('compressed.tar.gz'))).toEqual(['example.com/compressed:1']);
    expect(await real.runtime.imageStatus('example.com/compressed:1', never)).toMatchObject({
      tags: expect.arrayContaining(['example.com/compressed:1']),
    });
  });

  test('images load from an OCI layout, including under a short name', async () => {
    await makeBusyboxArchive(path('docker.tar'), { reference: 'docker.io/library/short:1' });
    for (const name of ['short:2', 'example.com/team/long:3']) {
      await runCommandOk('skopeo', [
        '--insecure-policy',
        'copy',
        `docker-archive:${path('docker.tar')}`,
        `oci-archive:${path('oci.tar')}:${name}`,
      ]);
      const [reference] = await load(path('oci.tar'));
      expect(reference).toBe(name === 'short:2' ? 'docker.io/library/short:2' : name);
      expect((await real.runtime.imageStatus(name, never))?.tags).toContain(reference);
      rmSync(path('oci.tar'));
    }
  });

  test('removing an image by ID removes all its names', async () => {
    await makeBusyboxArchive(path('removed.tar'), { reference: 'example.com/removed:1' });
    await load(path('removed.tar'));
    const image = await real.runtime.imageStatus('example.com/removed:1', never);
    const sameContent = image?.tags ?? [];
    await real.runtime.removeImage(image?.id ?? '', never);
    for (const tag of sameContent) expect(await real.runtime.imageStatus(tag, never)).toBeUndefined();
    await makeBusyboxArchive(path('again.tar'), { reference: BUSYBOX });
    expect(await load(path('again.tar'))).toEqual([BUSYBOX]);
  });

  test.each([
    ['text', () => Buffer.from('this is not a tar archive'), /is not an archive of images/],
    ['empty', () => Buffer.alloc(0), /is not an archive of images/],
    ['zeros', () => Buffer.alloc(10240), /is not an archive of images/],
    ['cut off', () => readFileSync(path('plain.tar')).subarray(0, 1_000_000), /is damaged \(its end is missing\)/],
    ['a broken compression', () => Buffer.from([0x1f, 0x8b, 1, 2, 3]), /is not an archive of images/],
  ])('loading an invalid archive fails with a clear sentence: %s', async (name, content, message) => {
    writeFileSync(path(name), content());
    await expect(load(path(name))).rejects.toThrow(message);
  });

  test('loading an absent archive fails with a clear sentence', async () => {
    await expect(load(path('absent'))).rejects.toThrow(`the file ${path('absent')} does not exist`);
  });

  test("images are pulled from a registry; pulling an absent image fails with the registry's error", async () => {
    await makeBusyboxArchive(path('pulled.tar'), { reference: 'docker.io/library/pulled:1' });
    const registry = await startRegistry(join(real.where.dataDir, 'registry'));
    try {
      const reference = `${registry.host}/team/pulled:1`;
      await registry.push(path('pulled.tar'), 'team/pulled:1');
      const id = await real.runtime.pullImage(reference, undefined, never);
      const status = await real.runtime.imageStatus(reference, never);
      expect(status).toMatchObject({ id, tags: expect.arrayContaining([reference]) });
      expect(status?.digests).toContainEqual(expect.stringMatching(`${registry.host}/team/pulled@sha256:`));
      await expect(real.runtime.pullImage(`${registry.host}/team/none:1`, undefined, never)).rejects.toThrow(
        /rpc error: code = NotFound desc = failed to pull and unpack image/,
      );
    } finally {
      await registry.stop();
    }
  });
});

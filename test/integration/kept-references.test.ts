import { existsSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { containerOf, deferOf, podOf } from '../../src/api/core/v1/pod/pod-fixtures.ts';
import { SECRETS } from '../../src/api/resources.ts';
import { registryBackend } from '../../src/client/registry-fixture.ts';
import { clientOf } from '../../src/client/typed-client.ts';
import type { KubeObject } from '../../src/machinery/meta.ts';
import { createKeptReferences } from '../../src/node/pod/kept-references.ts';
import { unmountUnder } from '../../src/node/volumes/mounts.ts';
import { createPodMemory } from '../../src/node/volumes/pod-memory.ts';
import { createVolumeManager } from '../../src/node/volumes/volume-manager.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import { scratchFolder } from '../support/lifepod.ts';
import { quiet } from './containerd-fixture.ts';

const TMPFS_MAGIC = 0x01021994;

test("a Secret of a defer container is kept in memory across agents, and deleted with the Pod's volumes", async () => {
  const { path, remove } = scratchFolder('kept');
  const life = new AbortController();
  const { signal } = life;
  const backend = await registryBackend();
  const parts = { client: clientOf(backend), timers: systemTimers(), log: quiet, signal };
  const agent = () => {
    const memory = createPodMemory(join(path, 'memory'), signal);
    const volumes = createVolumeManager({ ...parts, rootDirectory: path, memory, nodeName: 'n' });
    const { podDirectory, objects } = volumes;
    const kept = createKeptReferences({ ...parts, objects, podDirectory, memory, isStatic: () => false });
    return { volumes: kept.guard(volumes), kept, close: () => volumes.close() };
  };
  try {
    const metadata = { name: 'database', namespace: 'default' };
    await backend.set(SECRETS, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata,
      data: { password: 'cA==' },
    } as KubeObject);
    const entry = deferOf('entry', { envFrom: [{ secretRef: { name: 'database' } }] });
    const pod = podOf({ containers: [containerOf('app')], deferContainers: [entry] });
    const first = agent();
    await first.volumes.mount(pod, signal);
    await first.kept.keep(pod);
    first.close();
    await backend.remove(SECRETS, 'default', 'database');

    const folder = join(path, 'memory', 'u1', 'kept', 'secrets');
    expect(statfsSync(folder).type).toBe(TMPFS_MAGIC);
    const second = agent();
    await second.kept.keep(pod);
    expect(await second.kept.find(pod, 'secrets', 'database')).toMatchObject({ data: { password: 'cA==' } });
    await second.volumes.unmount('u1', signal);
    expect(existsSync(folder)).toBe(false);
    expect(await second.kept.find(pod, 'secrets', 'database')).toBeUndefined();
    second.close();
  } finally {
    await unmountUnder(path, signal);
    life.abort();
    await remove();
  }
});

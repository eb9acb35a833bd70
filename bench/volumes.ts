/**
 * Measures the engine with 100 Pods that each mount every kind of volume: its memory and CPU time, and how long a change of a ConfigMap and
 * a Secret takes until all volumes contain it.
 */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pod } from '../src/api/generated/types.ts';
import { coreResource } from '../src/api/resources.ts';
import type { KubeObject } from '../src/machinery/meta.ts';
import { podMemoryFolder } from '../src/node/volumes/pod-memory.ts';
import { type BenchEngine, BUSYBOX, cpuMillis, residentMebibytes, startEngine } from './engine.ts';
import { APP, createAndAwaitReady } from './pods.ts';

const PODS = 100;
const MEASURED_MILLIS = 10_000;
const core = (resource: string) => coreResource(resource);

export async function volumes(): Promise<void> {
  const engine = await startEngine();
  try {
    const { client, pid } = engine;
    const fresh = await residentMebibytes(pid);
    await client.resource(core('configmaps')).create(shown('ConfigMap', 'data'));
    await client.resource(core('secrets')).create(shown('Secret', 'stringData'));
    for (let i = 0; i < PODS; i++) await client.resource(core('persistentvolumeclaims')).create(claim(i));
    const began = performance.now();
    await createAndAwaitReady(
      client,
      Array.from({ length: PODS }, (_, i) => pod(i)),
    );
    const seconds = (performance.now() - began) / 1000;
    await pause(5000);
    const ready = await residentMebibytes(pid);
    const cpu = await cpuMillis(pid);
    const shownMillis = await change(engine);
    await pause(MEASURED_MILLIS);
    const busyMillis = (await cpuMillis(pid)) - cpu;
    console.log(
      '\n| Pods with every volume kind | all Ready after | engine, fresh | all Ready | after a change of their data | the last file changed after |',
    );
    console.log('|---|---|---|---|---|---|');
    console.log(
      `| ${PODS} | ${seconds.toFixed(1)} s | ${fresh.toFixed(0)} MiB | ${ready.toFixed(0)} MiB | ${(await residentMebibytes(pid)).toFixed(0)} MiB, ${busyMillis.toFixed(0)} ms of CPU | ${shownMillis.toFixed(0)} ms |`,
    );
  } finally {
    await engine.stop();
  }
}

/** Resolves with the milliseconds until all volumes contain the changes. */
async function change({ client: { resource }, dataDir }: BenchEngine): Promise<number> {
  const began = performance.now();
  const changed = (field: string): object => ({ [field]: { key: 'new' } });
  await resource(core('configmaps')).patch('shown', 'default', 'application/merge-patch+json', changed('data'));
  await resource(core('secrets')).patch('shown', 'default', 'application/merge-patch+json', changed('stringData'));
  const pods = join(dataDir, 'pods');
  const files = [
    join(pods, 'UID', 'volumes/kubernetes.io~configmap/map/key'),
    ...['secret/secret/key', 'projected/projected/map', 'projected/projected/secret'].map((file) =>
      join(podMemoryFolder(dataDir), 'UID', `volumes/kubernetes.io~${file}`),
    ),
  ];
  const waiting = new Set((await readdir(pods)).flatMap((uid) => files.map((file) => file.replace('UID', uid))));
  while (waiting.size > 0) {
    for (const file of waiting) if ((await readFile(file, 'utf8')) === 'new') waiting.delete(file);
    await pause(5);
  }
  return performance.now() - began;
}

const shown = (kind: string, field: string): KubeObject =>
  ({
    apiVersion: 'v1',
    kind,
    metadata: { name: 'shown', namespace: 'default' },
    [field]: { key: 'value', other: 'x' },
  }) as never;

const claim = (index: number): KubeObject =>
  ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: `claim-${index}`, namespace: 'default' },
    spec: claimSpec,
  }) as never;

const claimSpec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } };
const labels = { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } };

const kinds = (index: number): Record<string, object> => ({
  disk: { emptyDir: {} },
  memory: { emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
  host: { hostPath: { path: '/usr/share', type: 'Directory' } },
  map: { configMap: { name: 'shown' } },
  secret: { secret: { secretName: 'shown' } },
  downward: { downwardAPI: { items: [labels] } },
  projected: {
    projected: {
      sources: [
        { configMap: { name: 'shown', items: [{ key: 'key', path: 'map' }] } },
        { secret: { name: 'shown', items: [{ key: 'key', path: 'secret' }] } },
        { downwardAPI: { items: [labels] } },
        { serviceAccountToken: { path: 'token', audience: 'bench', expirationSeconds: 3600 } },
      ],
    },
  },
  image: { image: { reference: BUSYBOX, pullPolicy: 'IfNotPresent' } },
  claim: { persistentVolumeClaim: { claimName: `claim-${index}` } },
  ephemeral: { ephemeral: { volumeClaimTemplate: { spec: claimSpec } } },
});

const pod = (index: number): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: `volumes-${index}`, namespace: 'default', labels: { app: 'bench' } },
  spec: {
    terminationGracePeriodSeconds: 5,
    volumes: Object.entries(kinds(index)).map(([name, source]) => ({ name, ...source })),
    containers: [
      {
        name: 'app',
        image: BUSYBOX,
        command: APP,
        volumeMounts: [
          ...Object.keys(kinds(index)).map((name) => ({ name, mountPath: `/volumes/${name}` })),
          { name: 'disk', mountPath: '/volumes/part', subPath: 'part' },
        ],
      },
    ],
  },
});

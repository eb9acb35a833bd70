import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod, Volume } from '../../api/generated/types.ts';
import { CONFIG_MAPS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import type { Timers } from '../../platform/platform.ts';
import { createSerialByKey } from '../../platform/serial-by-key.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import type { SetUpPorts } from './pod-set-up.ts';
import { folderOf } from './set-up.ts';

export interface SetUpFixture {
  ports: SetUpPorts;
  backend: RegistryBackend;
  timers: VirtualTimers;
  failures: string[];
  warnings: unknown[];
  /** The times of all timers that were started through the ports. */
  started: number[];
  /** The times of the started timers that have neither fired nor been canceled. */
  running: Set<number>;
  folder(pod: Pod, volume: Volume): string;
  text(pod: Pod, volume: Volume, file: string): Promise<string>;
  write(name: string, data: Record<string, string>): Promise<void>;
  /** Makes each get call wait until release() is called. waiting() returns the number of waiting calls. */
  holdReads(): { waiting(): number; release(): void };
  /** Makes the API server issue the tokens token-1, token-2 and so on, without an expiration time in the response. */
  issueTokens(): void;
  close(): Promise<void>;
}

export function podWith(volumes: Volume[], uid = 'u1', annotations: Record<string, string> = {}): Pod {
  const pod = podOf({ volumes });
  return { ...pod, metadata: { ...pod.metadata, namespace: 'a', name: uid, uid, annotations } };
}

export const configMapVolume = (name: string): Volume => ({ name, configMap: { name } });

export const tokenVolume = (name: string, expirationSeconds: number): Volume => ({
  name,
  projected: { sources: [{ serviceAccountToken: { path: 'token', expirationSeconds } }] },
});

/** The annotation and the file have the name of the volume. */
export const annotationVolume = (name: string): Volume => ({
  name,
  downwardAPI: { items: [{ path: name, fieldRef: { fieldPath: `metadata.annotations['${name}']` } }] },
});

export async function setUpFixture(): Promise<SetUpFixture> {
  const root = await mkdtemp(join(tmpdir(), 'lifepod-pod-volumes-'));
  const backend = await registryBackend();
  const timers = createVirtualTimers();
  const failures: string[] = [];
  const warnings: unknown[] = [];
  const [started, running] = [[] as number[], new Set<number>()];
  const operations = createSerialByKey();
  const ports: SetUpPorts = {
    memory: { directory: (uid) => join(root, 'memory', uid), ready: async () => {} },
    client: clientOf(backend),
    timers: recorded(timers, started, running),
    log: { ...silentLog, warn: (_, fields) => warnings.push(fields?.['error']) },
    nodeName: 'n',
    onFailure: (_, { message }) => failures.push(message),
    directoriesOf: (uid) => ({ disk: join(root, 'pods', uid), memory: join(root, 'memory', uid) }),
    alone: operations.run,
  };
  const folder = (pod: Pod, volume: Volume): string => folderOf(ports.directoriesOf(uidOf(pod)), volume);
  return {
    ports,
    backend,
    timers,
    failures,
    warnings,
    started,
    running,
    folder,
    text: (pod, volume, file) => readFile(join(folder(pod, volume), file), 'utf8'),
    async write(name, data) {
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'a' }, data };
      await backend.set(CONFIG_MAPS, object as KubeObject);
    },
    holdReads: () => holdReads(backend),
    issueTokens() {
      let tokens = 0;
      backend.create = async (_, __, object) => ({ ...object, status: { token: `token-${++tokens}` } }) as KubeObject;
    },
    close: () => rm(root, { recursive: true, force: true }),
  };
}

function holdReads(backend: RegistryBackend): ReturnType<SetUpFixture['holdReads']> {
  const { get } = backend;
  const waiting: (() => void)[] = [];
  backend.get = async (...call) => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return get(...call);
  };
  return {
    waiting: () => waiting.length,
    release() {
      backend.get = get;
      for (const resume of waiting.splice(0)) resume();
    },
  };
}

function recorded(timers: Timers, started: number[], running: Set<number>): Timers {
  return {
    now: timers.now,
    at(time, callback) {
      started.push(time);
      running.add(time);
      const timer = timers.at(time, () => {
        running.delete(time);
        callback();
      });
      return {
        cancel() {
          running.delete(time);
          timer.cancel();
        },
      };
    },
  };
}

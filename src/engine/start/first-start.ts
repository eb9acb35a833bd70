/**
 * Keeps the data folder consistent while an engine starts. Later starts use the settings of a first start only if it has succeeded. A first
 * start that fails restores the former state of the folder and of the machine.
 *
 * Reads and writes the engine record. Invariants:
 *  1. The record has the state `starting` before a first start changes the machine or creates objects, so that the next start and
 *     `lifepod down` know what a killed first start may have left.
 *  2. An object that a client has written successfully is never removed: the first start counts as successful before the first write of a
 *     client takes effect, and when the folder of a Pod exists.
 *  3. Files that existed before a first start, and files of the user, are never removed.
 *  4. A later start that fails keeps the recorded settings, except those with which it may have written to the store, and the runtime if
 *     it has already created sandboxes in another one. From the time when the API server of such a start listens until the start fails, the
 *     record has the settings of the start, because `lifepod down` needs them.
 *  5. A later start with another runtime is refused before it changes anything if Pods run in the recorded one (runtime-change.ts).
 *  6. A later start that fails before any Pod has begun removes the network that it has created, for example if the disk is full.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { removeFolders, removeIfEmpty } from '../../platform/folders/folders.ts';
import type { Platform } from '../../platform/platform.ts';
import { removeTree } from '../../platform/remove-tree.ts';
import type { ResourceBackend } from '../../ports/backend.ts';
import type { RequestContext } from '../../ports/request.ts';
import { clearMachine, clearNetwork, hasNetwork, hasPodFolders, hasRuntime } from '../leftovers.ts';
import { type EngineRecord, readEngineRecord, recordOf, type Settings, writeEngineRecord } from '../settings.ts';
import { refuseRuntimeChange } from './runtime-change.ts';

/** Returns the record of a data folder in which a start has succeeded, or in which Pods may run; undefined if there is none. */
export function settledRecord(dataDir: string): EngineRecord | undefined {
  const record = readEngineRecord(dataDir);
  if (record?.state !== 'starting') return record;
  return hasPodFolders(dataDir) ? settled(record) : undefined;
}

const settled = ({ before: _, ...record }: EngineRecord): EngineRecord => ({ ...record, state: 'up' });

/**
 * `record` is the settled record from before the engine stopped. An engine that has not become ready may have restored the former record,
 * which then counts.
 */
export function recordDown(dataDir: string, record: EngineRecord): void {
  writeEngineRecord(dataDir, { ...(settledRecord(dataDir) ?? record), state: 'down' });
}

/** The log contains the reason of a failure, and sessions wait for the start in their folder. */
const isKept = (name: string): boolean => name.startsWith('lifepod.log') || name === 'sessions';
/** The folders in which the user creates files, perhaps while an engine starts. */
const OF_USER = ['certs.d', 'manifests', 'seccomp'];
/** Removed last: as long as they exist, other processes see that a first start is under way or is being undone. */
const LAST = ['engine.json', 'lock'];

/**
 * Removes everything that a failed or killed first start has left on the machine and in the data folder. The caller has locked the folder.
 * May be repeated.
 */
export async function clearFirstStart(dataDir: string, platform: Platform): Promise<void> {
  const record = readEngineRecord(dataDir);
  if (record?.state !== 'starting') return;
  await clearMachine(dataDir, platform, new AbortController().signal);
  await removeEntries(dataDir, record.before ?? []);
}

async function removeEntries(dataDir: string, before: readonly string[]): Promise<void> {
  const added = readdirSync(dataDir).filter((name) => !before.includes(name) && !isKept(name) && !LAST.includes(name));
  for (const name of added) {
    if (OF_USER.includes(name)) removeIfEmpty(join(dataDir, name));
    else await removeTree(join(dataDir, name));
  }
  rmSync(join(dataDir, 'engine.json'), { force: true });
}

export interface StartProgress {
  /** The file with the encryption keys of the last start; undefined if there was none. */
  formerKeys: string | undefined;
  /** Call this before the first part starts. */
  begin(): void;
  /**
   * Call this when all values of the store can be read: before the first write to the store, and when the store is open, even if the start
   * has written nothing. A later start then records its --service-cidr and --encryption-provider-config.
   */
  writing(): void;
  /** Call this when the API server listens on the port. */
  listening(port: number): void;
  /** Call this before anything happens that must outlive a failed first start. */
  settle(): void;
  succeed(): void;
  /**
   * Call this when a failed start has stopped all its parts. A first start removes what it has created, unless it is settled. A later start
   * restores the record, and removes the network if it has created it and no Pod has begun.
   */
  undo(): Promise<void>;
}

/**
 * Removes what a killed first start has left. Rejects with a UserError if refuseRuntimeChange() does. The caller has locked the data
 * folder. `record`: the record from which the settings were resolved. `created`: the folders that this start has created.
 */
export async function openDataFolder(
  settings: Settings,
  record: EngineRecord | undefined,
  created: readonly string[],
  platform: Platform,
): Promise<StartProgress> {
  const { dataDir, containerRuntimeEndpoint = '' } = settings;
  const present = settledRecord(dataDir);
  if (present !== undefined) {
    await refuseRuntimeChange({ dataDir, containerRuntimeEndpoint }, present, platform);
    return laterStart(settings, record, platform);
  }
  await clearFirstStart(dataDir, platform);
  const before = readdirSync(dataDir).filter((name) => !LAST.includes(name));
  return firstStart(settings, before, created, platform);
}

function laterStart(settings: Settings, record: EngineRecord | undefined, platform: Platform): StartProgress {
  const { dataDir, serviceCidr, encryptionProviderConfig } = settings;
  const { shutdown: _, ...given } = record ?? recordOf(settings, settings.port);
  let former: EngineRecord = { ...given, state: 'up' };
  const write = (content: EngineRecord): void => writeEngineRecord(dataDir, content);
  let mustRestore = false;
  // Also true before the start begins and after it has succeeded, so that undo() then keeps the network.
  let hadNetwork = true;
  return {
    formerKeys: record?.encryptionProviderConfig,
    begin() {
      hadNetwork = hasNetwork(dataDir);
      write(former);
    },
    writing() {
      if (former.serviceCidr === serviceCidr && former.encryptionProviderConfig === encryptionProviderConfig) return;
      former = { ...former, serviceCidr, encryptionProviderConfig };
      write(former);
    },
    listening(port) {
      mustRestore = record !== undefined;
      write(recordOf(settings, port));
    },
    settle: () => undefined,
    succeed() {
      mustRestore = false;
      hadNetwork = true;
    },
    async undo() {
      if (!hadNetwork && !hasPodFolders(dataDir)) await removeNetwork(dataDir, platform);
      if (!mustRestore) return;
      const { containerRuntimeEndpoint } = settings;
      try {
        const isUsed = await usesNewRuntime(settings, former, platform);
        write(isUsed ? { ...former, containerRuntimeEndpoint } : former);
      } catch (error) {
        // The caller reports why the start failed, which is more important.
        platform.log.warn('cannot record the former options after a failed start', { error: String(error) });
      }
    },
  };
}

/** Never rejects, because the caller reports why the start failed. */
async function removeNetwork(dataDir: string, platform: Platform): Promise<void> {
  await clearNetwork(dataDir, platform, new AbortController().signal).catch((error: unknown) => {
    // `lifepod down` tries again.
    platform.log.warn('cannot remove the network that a failed start has created', { error: String(error) });
  });
}

/** Resolves with whether the start uses another runtime than the one in the record, and Pods may have begun in it. */
async function usesNewRuntime(
  { dataDir, containerRuntimeEndpoint: endpoint }: Settings,
  former: EngineRecord,
  platform: Platform,
): Promise<boolean> {
  if (endpoint === former.containerRuntimeEndpoint || !hasPodFolders(dataDir)) return false;
  if (endpoint === undefined) return hasRuntime(dataDir);
  // Commands import this module, and seldom need gRPC.
  const { podsInRuntime } = await import('../engine-runtime.ts');
  const pods = await podsInRuntime(endpoint, dataDir, platform);
  // A runtime that does not answer now may have Pods of this start, because it has answered during the start.
  return pods === undefined || pods.length > 0;
}

function firstStart(
  settings: Settings,
  before: string[],
  created: readonly string[],
  platform: Platform,
): StartProgress {
  const { dataDir } = settings;
  let port = settings.port;
  let hasBegun = false;
  let isSettled = false;
  const write = (): void => {
    const record = recordOf(settings, port);
    writeEngineRecord(dataDir, isSettled ? record : { ...record, state: 'starting', before });
  };
  const settle = (): void => {
    if (isSettled) return;
    isSettled = true;
    write();
  };
  return {
    formerKeys: undefined,
    begin() {
      hasBegun = true;
      write();
    },
    // The settings of a first start do not count before settle().
    writing: () => undefined,
    listening(opened) {
      port = opened;
      write();
    },
    settle,
    succeed: settle,
    async undo() {
      if (!isSettled && hasBegun && hasPodFolders(dataDir)) settle();
      if (isSettled) return;
      try {
        if (hasBegun) await clearFirstStart(dataDir, platform);
        else await removeEntries(dataDir, before);
        if (before.every(isKept)) rmSync(join(dataDir, 'lock'), { force: true });
        removeFolders(created);
      } catch (error) {
        // The next start and `lifepod down` try again, because the record still has the state `starting`.
        platform.log.warn('cannot remove all that a failed first start has left', { error: String(error) });
      }
    },
  };
}

/** Returns a backend that calls `settle` before each write of a client. */
export function settledByWrites<Backend extends ResourceBackend>(backend: Backend, settle: () => void): Backend {
  const written = (request: RequestContext): RequestContext => {
    if (request.source === 'client') settle();
    return request;
  };
  return {
    ...backend,
    create: async (request, object, options) => backend.create(written(request), object, options),
    update: async (request, object, options) => backend.update(written(request), object, options),
    patch: async (request, type, body, options) => backend.patch(written(request), type, body, options),
    delete: async (request, options) => backend.delete(written(request), options),
    deleteCollection: async (request, options) => backend.deleteCollection(written(request), options),
  };
}

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Client } from '../src/client/client.ts';
import { clientFromKubeconfig } from '../src/client/kubeconfig.ts';
import { dataDirOwner } from '../src/platform/files.ts';
import { makeBusyboxArchive } from '../src/runtime/images/local-images.ts';

const run = promisify(execFile);
const lifepod = join(import.meta.dirname, '../bin/lifepod');

export const BUSYBOX = 'docker.io/library/busybox:1.28';

export interface BenchEngine {
  client: Client;
  dataDir: string;
  pid: number;
  /** The cleanup runs before the engine stops, even after Ctrl+C. */
  beforeStop(cleanup: () => Promise<void>): void;
  stop(): Promise<void>;
}

/** Resolves when the engine is ready. Ctrl+C stops it. */
export async function startEngine(): Promise<BenchEngine> {
  const scratch = await mkdtemp(join(tmpdir(), 'lifepod-bench-'));
  const dataDir = join(scratch, 'data');
  const options = ['--data-dir', dataDir];
  const cleanups: (() => Promise<void>)[] = [];
  const end = async (): Promise<void> => {
    for (const cleanup of cleanups) await cleanup();
    await run(lifepod, ['down', ...options]);
    await rm(scratch, { recursive: true, force: true });
  };
  let ending: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    ending ??= end().finally(() => process.off('SIGINT', interrupted));
    return ending;
  };
  const interrupted = (): void => void stop().finally(() => process.exit(130));
  process.on('SIGINT', interrupted);
  try {
    await run(lifepod, [
      'up',
      '--detach',
      ...options,
      '--port',
      '0',
      '--pod-cidr',
      '10.213.0.0/16',
      '--service-cidr',
      '10.214.0.0/16',
    ]);
    const archive = join(scratch, 'busybox.tar');
    await makeBusyboxArchive(archive, { reference: BUSYBOX });
    await run(lifepod, ['image', 'load', ...options, archive]);
    const pid = dataDirOwner(dataDir);
    if (pid === undefined) throw new Error(`no engine runs on ${dataDir}`);
    return {
      client: await clientFromKubeconfig(join(dataDir, 'kubeconfig')),
      dataDir,
      pid,
      beforeStop: (each) => void cleanups.push(each),
      stop,
    };
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
}

export async function residentMebibytes(pid: number): Promise<number> {
  return Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** Linux counts the CPU time of a process in ticks of 10 ms. */
export async function cpuMillis(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const at = (index: number): number => sorted[index] ?? Number.NaN;
  return sorted.length % 2 === 1 ? at(middle) : (at(middle - 1) + at(middle)) / 2;
}

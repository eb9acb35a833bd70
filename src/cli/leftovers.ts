/**
 * What an engine of a data folder may have left on the machine: processes and mounts. `lifepod down` and the demo end
 * with it, so that also a crash half-way leaves nothing.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { runCommandOk } from '../platform/processes.ts';

export interface FoundProcess {
  pid: number;
  commandLine: string[];
}

/** Processes one of whose arguments names something in the data folder: its containerd, the shims, helpers; not this process. */
export function processesOf(dataDir: string): FoundProcess[] {
  const found: FoundProcess[] = [];
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) continue;
    const commandLine = readCommandLine(Number(entry));
    if (commandLine.some((argument) => names(argument, dataDir))) found.push({ pid: Number(entry), commandLine });
  }
  return found;
}

/** /d/x and --root=/d/x name the folder /d; /d2 does not. */
function names(argument: string, dataDir: string): boolean {
  const at = argument.indexOf(dataDir);
  if (at === -1) return false;
  const next = argument[at + dataDir.length];
  return (at === 0 || '=,:'.includes(argument[at - 1] ?? '')) && (next === undefined || next === '/');
}

function readCommandLine(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  } catch {
    return [];
  }
}

/** Mount points in the data folder, the deepest first. */
export function mountsIn(dataDir: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) =>
      (line.split(' ')[4] ?? '').replace(/\\([0-7]{3})/g, (_, octal: string) =>
        String.fromCharCode(Number.parseInt(octal, 8)),
      ),
    )
    .filter((point) => point.startsWith(`${dataDir}/`))
    .reverse();
}

/** The resident memory of a process in bytes; 0 where it is gone. */
export function residentBytes(pid: number): number {
  try {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return Number(line?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** A runtime's process, and what runs in its containers: killing a shim alone would leave these behind. */
function runtimeProcesses(dataDir: string): FoundProcess[] {
  const ours = processesOf(dataDir).filter(({ commandLine }) =>
    /^(containerd|runc)/.test((commandLine[0] ?? '').replace(/^.*\//, '')),
  );
  const childrenOf = new Map<number, number[]>();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const parent = parentOf(Number(entry));
    childrenOf.set(parent, [...(childrenOf.get(parent) ?? []), Number(entry)]);
  }
  const found = new Map(ours.map((process) => [process.pid, process]));
  // A Map's iteration also visits what is added on the way.
  for (const pid of found.keys()) {
    for (const child of childrenOf.get(pid) ?? []) {
      if (!found.has(child)) found.set(child, { pid: child, commandLine: readCommandLine(child) });
    }
  }
  return [...found.values()];
}

function parentOf(pid: number): number {
  try {
    return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Kills what is left of the data folder's runtime and unmounts what is mounted in it. Returns what it did. */
export async function removeLeftovers(dataDir: string, signal: AbortSignal): Promise<string[]> {
  const done: string[] = [];
  for (const { pid, commandLine } of runtimeProcesses(dataDir)) {
    try {
      process.kill(pid, 'SIGKILL');
      done.push(`killed the process ${pid} (${commandLine.slice(0, 2).join(' ')})`);
    } catch {
      // It ended by itself.
    }
  }
  for (const point of mountsIn(dataDir)) {
    await runCommandOk('umount', ['--lazy', point], { signal });
    done.push(`unmounted ${point}`);
  }
  return done;
}

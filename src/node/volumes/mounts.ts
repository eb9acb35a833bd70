/**
 * Mounts and unmounts file systems, and finds mounts by their mount point or source. Unmounting a mount that no longer exists is success.
 * The functions that find mounts do not follow a folder that is itself a link. They resolve links in the path to the folder, since the
 * kernel reports real paths.
 */
import { constants } from 'node:fs';
import { open, readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { CommandError, runCommand, runCommandOk } from '../../platform/processes.ts';

/** Resolves to the mount points at or under the folders as real paths. A mount comes after the mount that contains it. */
export async function mountsUnder(...folders: string[]): Promise<string[]> {
  const places = await Promise.all(folders.map(realPlace));
  const points = (await mounts()).map(({ point }) => point);
  return points.filter((point) => places.some((place) => point === place || point.startsWith(`${place}/`)));
}

/** False if the path does not exist. The cost does not depend on the number of mounts. */
export async function isMountPoint(place: string): Promise<boolean> {
  const [own, above] = await Promise.all([mountIdOf(place, constants.O_NOFOLLOW), mountIdOf(dirname(place), 0)]);
  return own !== undefined && own !== above;
}

/** Linux's O_PATH, which Node.js does not define. The descriptor only identifies the location; see open(2). */
const O_PATH = 0o10000000;

/**
 * Resolves to the ID of the mount that contains the path, or of the newest mount at the path; undefined if the path does not exist. Source:
 * mnt_id in proc_pid_fdinfo(5).
 */
async function mountIdOf(place: string, flags: number): Promise<string | undefined> {
  try {
    const handle = await open(place, O_PATH | flags);
    try {
      return /^mnt_id:\s*(\d+)$/m.exec(await readFile(`/proc/self/fdinfo/${handle.fd}`, 'utf8'))?.[1];
    } finally {
      await handle.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return undefined;
  }
}

/**
 * Resolves to all mount points whose source is the folder or something in it. Computes the sources of mounts from their devices and roots,
 * since mountinfo has no source paths.
 */
export async function mountsFrom(folder: string): Promise<string[]> {
  const [id, place] = await Promise.all([mountIdOf(folder, constants.O_NOFOLLOW), realPlace(folder)]);
  const all = await mounts();
  const own = all.find((mount) => mount.id === id);
  if (own === undefined) return [];
  const root = join(own.root, relative(own.point, place));
  return all
    .filter((each) => each.device === own.device && (each.root === root || each.root.startsWith(`${root}/`)))
    .map(({ point }) => point);
}

async function realPlace(folder: string): Promise<string> {
  try {
    return join(await realpath(dirname(folder)), basename(folder));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return folder;
  }
}

interface Mount {
  id: string;
  /** The device number of the file system, as major:minor. */
  device: string;
  /** The path of the mounted folder or file within its file system. */
  root: string;
  point: string;
}

/** Source: proc_pid_mountinfo(5). */
async function mounts(): Promise<Mount[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).trimEnd().split('\n');
  return lines.map((line) => {
    const [id = '', , device = '', root = '', point = ''] = line.split(' ');
    return { id, device, root: unescaped(root), point: unescaped(point) };
  });
}

const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(parseInt(octal, 8)));

/** Unmounts everything at or under the folder. Rejects with the mount point and the message of umount(8) if a mount cannot be unmounted. */
export async function unmountUnder(folder: string, signal: AbortSignal): Promise<void> {
  for (const point of (await mountsUnder(folder)).reverse()) {
    const result = await runCommand('umount', ['--no-canonicalize', point], { signal });
    if (result.code !== 0 && (await mountsUnder(folder)).includes(point)) {
      throw new Error(`cannot unmount ${point}: ${result.stderr.trim()}`);
    }
  }
}

/** Whether the kernel can keep a tmpfs out of swap (6.4 and later): true until mount(8) rejects the option noswap as unknown. */
let knowsNoswap = true;

/** The content of the tmpfs is never swapped to disk, unless the kernel does not support this. */
export async function mountTmpfs(folder: string, options: string[], signal: AbortSignal): Promise<void> {
  const mountWith = (all: string[]): string[] => ['-t', 'tmpfs', '-o', all.join(','), 'tmpfs', folder];
  if (knowsNoswap)
    try {
      await runCommandOk('mount', mountWith([...options, 'noswap']), { signal });
      return;
    } catch (error) {
      if (!(error instanceof CommandError) || !isUnknownOptionError(error.message)) throw error;
    }
  await runCommandOk('mount', mountWith(options), { signal });
  // If the mount fails without the option too, the option was not the cause, so knowsNoswap stays true.
  knowsNoswap = false;
}

/** Whether mount(8) failed because an option is unknown. Knows the messages of util-linux before and since 2.39, and of busybox. */
export const isUnknownOptionError = (stderr: string): boolean =>
  /bad option|unknown parameter|invalid argument/i.test(stderr);

export async function mountHugetlbfs(folder: string, pageBytes: number, signal: AbortSignal): Promise<void> {
  const options = `pagesize=${pageBytes},mode=0777`;
  await runCommandOk('mount', ['-t', 'hugetlbfs', '-o', options, 'nodev', folder], { signal });
}

/** `source` may be a magic link (/proc/<pid>/fd/<n>), which only the kernel can resolve: mount(8) must not resolve it first. */
export async function bindMount(source: string, target: string, signal: AbortSignal): Promise<void> {
  await runCommandOk('mount', ['--no-canonicalize', '--bind', source, target], { signal });
}

/** Makes an existing mount read-only, since the kernel cannot create a read-only bind mount in one call. */
export async function remountReadOnly(folder: string, signal: AbortSignal): Promise<void> {
  await runCommandOk('mount', ['-o', 'remount,bind,ro', folder], { signal });
}

/** Reads from /sys how many huge pages the kernel has reserved. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Returns the resource name of a page size in the kernel's notation: hugepages-2Mi for 2MB. */
export const hugepagesName = (size: string): string => `hugepages-${size.replace(/B$/, 'i')}`;

/** Resolves to the reserved memory in bytes by page size (2MB, 1GB). Reserved memory is not available as normal memory. */
export async function readHugepages(folder = '/sys/kernel/mm/hugepages'): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const entry of (await readdir(folder).catch(() => [])).sort()) {
    const kibibytes = Number(/^hugepages-(\d+)kB$/.exec(entry)?.[1]);
    const pages = Number(await readFile(join(folder, entry, 'nr_hugepages'), 'utf8'));
    found.set(sizeOf(kibibytes), pages * kibibytes * 1024);
  }
  return found;
}

function sizeOf(kibibytes: number): string {
  if (kibibytes >= 1024 * 1024) return `${kibibytes / (1024 * 1024)}GB`;
  return kibibytes >= 1024 ? `${kibibytes / 1024}MB` : `${kibibytes}KB`;
}

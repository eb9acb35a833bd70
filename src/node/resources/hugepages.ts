import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Converts the kernel's notation of a page size: 2MB becomes hugepages-2Mi. */
export const hugepagesName = (size: string): string => `hugepages-${size.replace(/B$/, 'i')}`;

/** Resolves to the reserved bytes by page size (2MB, 1GB). They are not available as normal memory. */
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

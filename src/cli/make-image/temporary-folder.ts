import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SIGNAL_CODES } from '../signals.ts';

/** Removes the folder when `use` settles. A signal also removes the folder, and ends the process. */
export async function withTemporaryFolder<T>(prefix: string, use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  const handlers = Object.entries(SIGNAL_CODES).map(([name, code]) => {
    const handler = (): void => {
      remove();
      process.exit(code);
    };
    process.on(name, handler);
    return [name, handler] as const;
  });
  try {
    return await use(folder);
  } finally {
    remove();
    for (const [name, handler] of handlers) process.off(name, handler);
  }
}

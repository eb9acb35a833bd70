import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UserError } from '../../platform/files.ts';
import { SIGNAL_CODES } from '../signals.ts';

/** Creates a folder for temporary files. Throws a UserError if this fails, except on a full disk, which failureText() explains. */
export function createTemporaryFolder(prefix: string): string {
  try {
    return mkdtempSync(join(tmpdir(), prefix));
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (FULL.includes(code)) throw error;
    throw new UserError(
      `the folder for temporary files, ${tmpdir()}, ${PROBLEMS[code] ?? `cannot be used (${message})`}: set TMPDIR to an existing folder`,
    );
  }
}

const FULL: readonly string[] = ['ENOSPC', 'EDQUOT'];
const PROBLEMS: Readonly<Record<string, string>> = { ENOENT: 'does not exist', ENOTDIR: 'is not a folder' };

/** Removes the folder when `use` settles. A signal also removes the folder, and ends the process. */
export async function withTemporaryFolder<T>(prefix: string, use: (folder: string) => Promise<T>): Promise<T> {
  const folder = createTemporaryFolder(prefix);
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

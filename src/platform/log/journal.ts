/** Sources: systemd.exec(5), sd-daemon(3). */
import { fstatSync } from 'node:fs';
import type { LogLevel } from './text-line.ts';

/** Source: syslog(3). */
const PRIORITIES: Readonly<Record<LogLevel, number>> = { debug: 7, info: 6, warn: 4, error: 3 };

/** Returns the prefix that gives a line its priority, for example for `journalctl -p warning`. The journal removes the prefix. */
export const journalPrefix = (level: LogLevel): string => `<${PRIORITIES[level]}>`;

/**
 * Returns whether systemd has connected the file descriptor to the journal. JOURNAL_STREAM contains the device and the inode of the stream.
 * A process that has inherited the variable may write to another file.
 */
export function isJournal(fileDescriptor: number, env: NodeJS.ProcessEnv): boolean {
  const stream = env['JOURNAL_STREAM'];
  if (!stream) return false;
  try {
    const { dev, ino } = fstatSync(fileDescriptor, { bigint: true });
    return stream === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

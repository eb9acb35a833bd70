/**
 * Reads the termination message of a container that has ended: the content of its file, or the end of its log.
 * Source: "Determine the Reason for Pod Failure" of the v1.33 documentation (sizes, policy); normalizeStatus of v1.33's kubelet (a Pod's
 * limit, shared by its containers).
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { readContainerLog } from '../logs/log-source.ts';

const MAX_CONTAINER_BYTES = 4096;
const MAX_POD_BYTES = 12 * 1024;
const MAX_LOG_BYTES = 2048;
const MAX_LOG_LINES = 80;

/** `containers`: the number of containers of all kinds in the Pod. */
export const messageLimitBytes = (containers: number): number =>
  Math.min(MAX_CONTAINER_BYTES, Math.floor(MAX_POD_BYTES / Math.max(1, containers)));

/** Cuts the message without splitting a character. */
export function limitMessage(message: string, limitBytes: number): string {
  const bytes = Buffer.from(message);
  if (bytes.length <= limitBytes) return message;
  let end = limitBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

export interface TerminationMessageOptions {
  /** Undefined for a container without a terminationMessagePath. */
  file: string | undefined;
  logFile: string;
  /** Resolves when the log contains all output of the attempt. */
  logEnded(): Promise<void>;
  policy: string | undefined;
  exitCode: number;
}

/**
 * Resolves to the message; '' if there is none. If reading fails, the message describes the error, as upstream's does. Rejects if `signal`
 * is aborted or logEnded() rejects.
 */
export async function readTerminationMessage(options: TerminationMessageOptions, signal: AbortSignal): Promise<string> {
  const { file, logFile, logEnded, policy, exitCode } = options;
  const message = file === undefined ? '' : await readStart(file);
  if (message !== '' || policy !== 'FallbackToLogsOnError' || exitCode === 0) return message;
  await logEnded();
  return readLogEnd(logFile, signal);
}

/** The container may have replaced the file, so links are not followed, and opening a pipe does not block. */
async function readStart(file: string): Promise<string> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  try {
    const handle = await open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const buffer = Buffer.alloc(MAX_CONTAINER_BYTES);
      const { bytesRead } = await handle.read(buffer, 0, MAX_CONTAINER_BYTES, 0);
      return buffer.toString('utf8', 0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    return `Error on reading termination log ${file}: ${(error as Error).message}`;
  }
}

async function readLogEnd(logFile: string, signal: AbortSignal): Promise<string> {
  let text = Buffer.alloc(0);
  try {
    for await (const chunk of readContainerLog({ path: logFile }, { tailLines: MAX_LOG_LINES }, signal)) {
      text = Buffer.concat([text, chunk]).subarray(-MAX_LOG_BYTES);
    }
  } catch (error) {
    if (signal.aborted) throw error;
    return `Error on reading termination message from logs: ${(error as Error).message}`;
  }
  return text.toString('utf8');
}

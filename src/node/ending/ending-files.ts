/**
 * Reads and writes a file in the Pod's folder that records that the node terminates the Pod, and with which grace period. The file is
 * written before the Pod's worker is notified, so that the next agent continues the termination instead of restarting the containers.
 * The file is deleted with the folder, or by pod-terminations.ts when the Pod starts again.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeEnd } from '../../lifecycle/types.ts';
import { readTextIfPresent, writeFileAtomic } from '../../platform/files.ts';

export const nodeEndFile = (podDirectory: string): string => join(podDirectory, 'node-end.json');

export function writeNodeEnd(podDirectory: string, end: NodeEnd): void {
  if (!existsSync(podDirectory)) mkdirSync(podDirectory, { recursive: true, mode: 0o750 });
  writeFileAtomic(nodeEndFile(podDirectory), JSON.stringify(end));
}

/** Returns the termination that the file records; undefined if the file does not exist or is not valid JSON. */
export function readNodeEnd(podDirectory: string): NodeEnd | undefined {
  const text = readTextIfPresent(nodeEndFile(podDirectory));
  try {
    return text === undefined ? undefined : (JSON.parse(text) as NodeEnd);
  } catch {
    return undefined;
  }
}

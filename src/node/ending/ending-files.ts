/**
 * A file in the Pod's folder records that the node terminates the Pod, and with which grace period. The file is written before the Pod's
 * worker is notified, so that the next agent continues the termination instead of restarting the containers.
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

export function readNodeEnd(podDirectory: string): NodeEnd | undefined {
  const text = readTextIfPresent(nodeEndFile(podDirectory));
  try {
    return text === undefined ? undefined : (JSON.parse(text) as NodeEnd);
  } catch {
    return undefined;
  }
}

/**
 * That the node ends a Pod, and by when, in a file of the Pod's folder: written before its worker hears of it, so that the
 * next agent goes on with the end instead of starting the Pod's containers again. It goes with the folder.
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

/** undefined: there is none, or none that can be read. */
export function readNodeEnd(podDirectory: string): NodeEnd | undefined {
  const text = readTextIfPresent(nodeEndFile(podDirectory));
  try {
    return text === undefined ? undefined : (JSON.parse(text) as NodeEnd);
  } catch {
    return undefined;
  }
}

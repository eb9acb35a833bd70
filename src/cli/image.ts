/** `lifepod image load`. */
import { accessSync, constants } from 'node:fs';
import { resolve } from 'node:path';
import { dataDirOwner, UserError } from '../platform/files.ts';
import { systemTimers } from '../platform/node.ts';
import { containerdPaths } from '../runtime/containerd/paths.ts';
import { loadImageArchives } from '../runtime/images/load.ts';
import { readEngineRecord } from './settings.ts';

export async function loadImages(dataDir: string, files: string[]): Promise<void> {
  if (dataDirOwner(dataDir) === undefined) {
    throw new UserError(`no lifepod runs in ${dataDir}: start it with 'lifepod up --detach --data-dir ${dataDir}'`);
  }
  for (const file of files) {
    try {
      accessSync(file, constants.R_OK);
    } catch {
      throw new UserError(`the file ${file} is not there or cannot be read: give archives that 'docker save' writes`);
    }
  }
  const endpoint = readEngineRecord(dataDir)?.containerRuntimeEndpoint ?? `unix://${containerdPaths(dataDir).socket}`;
  const signal = new AbortController().signal;
  const paths = files.map((file) => resolve(file));
  for (const reference of await loadImageArchives({ endpoint, timers: systemTimers() }, paths, signal)) {
    process.stdout.write(`loaded ${reference}\n`);
  }
}

/** Containers of the image busybox that run Node.js and programs of this folder, which are mounted from the machine. */
import { existsSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';

const FOLDERS = [
  ['/node', dirname(realpathSync(process.execPath))],
  ['/programs', import.meta.dirname],
  ...['/lib', '/lib64'].filter((path) => existsSync(path)).map((path) => [path, path] as const),
] as const;

/** The fields of a Pod's spec (`volumes`) and of its containers (`mounts`) with which they run a program of this folder. */
export const NODE_JS = {
  volumes: FOLDERS.map(([, path], index) => ({ name: `m${index}`, hostPath: { path } })),
  mounts: FOLDERS.map(([mountPath], index) => ({ name: `m${index}`, mountPath, readOnly: true })),
};

/** The container needs the mounts of NODE_JS. */
export const nodeCommand = (program: string, ...args: string[]): string[] => [
  '/node/node',
  `/programs/${program}`,
  ...args,
];

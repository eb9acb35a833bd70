/**
 * Installs the npm package in the layout of `npm install -g`, without a registry. The packages that lifepod needs at run time are copied
 * from node_modules, and no other package can be imported.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runCommandOk } from '../../src/platform/processes.ts';
import { REPOSITORY } from './lifepod.ts';

export interface InstalledPackage {
  /** The program on the PATH, a link. */
  lifepod: string;
  root: string;
  packedBytes: number;
  files: string[];
}

interface Packed {
  filename: string;
  size: number;
  files: { path: string }[];
}

interface LockFile {
  packages: Record<string, { dev?: boolean; devOptional?: boolean }>;
}

/** Installs the package into `prefix`, an existing folder. scripts/build.sh must have created dist/. */
export async function installPackage(prefix: string): Promise<InstalledPackage> {
  const pack = ['pack', '--json', '--ignore-scripts', '--loglevel=error', '--pack-destination', prefix];
  const [packed] = JSON.parse(await runCommandOk('npm', pack, { cwd: REPOSITORY })) as Packed[];
  if (packed === undefined) throw new Error('npm pack has created no package');
  const root = join(prefix, 'lib/node_modules/lifepod');
  mkdirSync(root, { recursive: true });
  const archive = join(prefix, packed.filename);
  await runCommandOk('tar', ['-xzf', archive, '-C', root, '--strip-components=1', '--no-same-owner']);
  copyRunTimePackages(join(root, 'node_modules'));
  const bin = join(prefix, 'bin');
  mkdirSync(bin);
  symlinkSync('../lib/node_modules/lifepod/bin/lifepod', join(bin, 'lifepod'));
  symlinkSync(process.execPath, join(bin, 'node'));
  return {
    lifepod: join(bin, 'lifepod'),
    root,
    packedBytes: packed.size,
    files: packed.files.map(({ path }) => path),
  };
}

function copyRunTimePackages(target: string): void {
  const installed = realpathSync(join(REPOSITORY, 'node_modules'));
  const { packages } = JSON.parse(readFileSync(join(REPOSITORY, 'package-lock.json'), 'utf8')) as LockFile;
  for (const [path, { dev, devOptional }] of Object.entries(packages)) {
    const name = path.replace(/^node_modules\//, '');
    // npm installs optional packages only on the platforms that they support.
    if (path === '' || dev === true || devOptional === true || !existsSync(join(installed, name))) continue;
    mkdirSync(dirname(join(target, name)), { recursive: true });
    cpSync(join(installed, name), join(target, name), { recursive: true, verbatimSymlinks: true });
  }
}

export const bytesIn = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);

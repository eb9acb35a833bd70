/** The versions that lifepod reports. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readTextIfPresent } from '../platform/files.ts';

interface PackageFile {
  version: string;
}

const packageFile = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as PackageFile;

export const LIFEPOD_VERSION = packageFile.version;

/** The version of Kubernetes whose API is served. */
export const KUBERNETES_VERSION = 'v1.33.0';

/** The version that /version and the Node report, for example v1.33.0+lifepod.0.1.0. */
export const SERVED_VERSION = `${KUBERNETES_VERSION}+lifepod.${LIFEPOD_VERSION}`;

/**
 * Returns the hash of the commit that this lifepod was built from: scripts/build.sh stores it in the package, and a clone has it in its
 * .git folder. Undefined if neither has it. `sources` is the folder src of a clone, or dist of a package.
 */
export function gitCommit(sources = fileURLToPath(new URL('..', import.meta.url))): string | undefined {
  const fileOf = (path: string): string | undefined => readTextIfPresent(join(sources, path));
  const head = fileOf('git-commit') ?? fileOf('../.git/HEAD');
  const reference = /^ref: (.+)$/m.exec(head ?? '')?.[1];
  if (reference === undefined) return head?.trim();
  const packed = fileOf('../.git/packed-refs')
    ?.split('\n')
    .find((line) => line.endsWith(` ${reference}`));
  return fileOf(join('../.git', reference))?.trim() ?? packed?.split(' ')[0];
}

/** Returns the versions as a line, or as JSON, without a line break at the end. */
export function versionText(output?: 'json'): string {
  if (output === undefined)
    return `lifepod ${LIFEPOD_VERSION} (Kubernetes API ${KUBERNETES_VERSION}, Node.js ${process.version})`;
  const versions = {
    version: LIFEPOD_VERSION,
    gitVersion: SERVED_VERSION,
    gitCommit: gitCommit(),
    kubernetesVersion: KUBERNETES_VERSION,
    nodeVersion: process.version,
  };
  return JSON.stringify(versions, undefined, 2);
}

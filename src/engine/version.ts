/** Finds the commit from which lifepod was built, and formats the versions that lifepod reports. */

import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inflateSync } from 'node:zlib';
import { formatTime } from '../machinery/time.ts';
import { architecture } from '../platform/architecture.ts';
import { readTextIfPresent } from '../platform/files.ts';
import type { Metrics } from '../platform/metrics.ts';
import { KUBERNETES_VERSION, LIFEPOD_VERSION, SERVED_VERSION } from '../platform/version/version.ts';

export { KUBERNETES_VERSION, LIFEPOD_VERSION, SERVED_VERSION };

const SOURCES = fileURLToPath(new URL('..', import.meta.url));

/**
 * Returns the hash of the commit; undefined if it is not known. scripts/build.sh stores the hash in the package. A clone has it in its .git
 * folder, and a linked worktree in the .git folder of its clone. `sources` is the folder src of a clone, or dist of a package. Source:
 * gitrepository-layout(5).
 */
export function gitCommit(sources = SOURCES): string | undefined {
  const built = readTextIfPresent(join(sources, 'git-commit'));
  if (built !== undefined) return built.trim();
  const own = gitFolder(sources);
  const common = commonFolder(sources);
  const head = textOf(join(own, 'HEAD'));
  const reference = /^ref: (.+)$/m.exec(head ?? '')?.[1];
  if (reference === undefined) return head?.trim();
  const packed = textOf(join(common, 'packed-refs'))
    ?.split('\n')
    .find((line) => line.endsWith(` ${reference}`));
  return textOf(join(common, reference))?.trim() ?? packed?.split(' ')[0];
}

/**
 * Returns the time of the commit, such as 2026-01-31T12:00:00Z; undefined if it is not known, for example because the clone has the commit
 * only in a pack. Source: "Git Objects" of Pro Git.
 */
export function buildDate(sources = SOURCES): string | undefined {
  const built = readTextIfPresent(join(sources, 'build-date'));
  if (built !== undefined) return built.trim();
  const commit = gitCommit(sources) ?? '';
  const seconds = /^committer .*> (\d+) [+-]\d{4}$/m.exec(looseObject(sources, commit) ?? '')?.[1];
  return seconds === undefined ? undefined : formatTime(Number(seconds) * 1000);
}

/** Returns undefined if the object has no file of its own, for example because it is in a pack. */
function looseObject(sources: string, hash: string): string | undefined {
  try {
    const file = readFileSync(join(commonFolder(sources), 'objects', hash.slice(0, 2), hash.slice(2)));
    return inflateSync(file).toString();
  } catch {
    return undefined;
  }
}

/** For a linked worktree, returns the .git folder of its clone. */
function commonFolder(sources: string): string {
  const own = gitFolder(sources);
  return resolve(own, textOf(join(own, 'commondir'))?.trim() ?? '.');
}

/** Returns the .git folder of a clone, or the folder to which the .git file of a linked worktree points. */
function gitFolder(sources: string): string {
  const linked = /^gitdir: (.+)$/m.exec(textOf(join(sources, '../.git')) ?? '')?.[1];
  return linked === undefined ? join(sources, '../.git') : resolve(sources, '..', linked);
}

/** Returns undefined if the file cannot be read, for example because it is a folder. */
function textOf(path: string): string | undefined {
  try {
    return readTextIfPresent(path);
  } catch {
    return undefined;
  }
}

/** Adds the version as labels of a gauge. Source: component-base/metrics of v1.33, with Node.js in place of Go. */
export function addBuildInfo(metrics: Metrics): void {
  const [major = '', minor = ''] = KUBERNETES_VERSION.slice(1).split('.');
  const labels = {
    compiler: `node ${process.version}`,
    git_commit: gitCommit() ?? '',
    git_version: SERVED_VERSION,
    major,
    minor,
    platform: `${process.platform}/${architecture()}`,
  };
  const help = 'The versions of Kubernetes, lifepod and Node.js, as labels of the constant 1.';
  metrics.gauge('kubernetes_build_info', help, Object.keys(labels)).add(1, ...Object.values(labels));
}

export const shortCommit = (commit: string): string => commit.slice(0, 12);

/** Returns the text without a line break at its end. */
export function versionText(output?: 'json'): string {
  const commit = gitCommit();
  if (output === undefined) {
    const parts = [SERVED_VERSION, ...(commit === undefined ? [] : [`commit ${shortCommit(commit)}`])];
    return `lifepod ${LIFEPOD_VERSION} (${parts.join(', ')}, Node.js ${process.version})`;
  }
  const versions = {
    version: LIFEPOD_VERSION,
    gitVersion: SERVED_VERSION,
    gitCommit: commit,
    buildDate: buildDate(),
    kubernetesRelease: KUBERNETES_VERSION,
    nodeVersion: process.version,
  };
  return JSON.stringify(versions, undefined, 2);
}

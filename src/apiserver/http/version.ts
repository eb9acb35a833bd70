/** Creates the content of /version: the version of Kubernetes whose API lifepod implements, and the version of lifepod. */
import { architecture } from '../../platform/architecture.ts';

/**
 * `version` is for example v1.33.0+lifepod.0.1.0; `gitCommit` is the hash of a commit, and
 * `buildDate` its time; undefined if they are unknown. Clients expect a `goVersion`: it is that of Node.js, in the same form. Source:
 * component-base/version of v1.33, whose date is also 1970 if it is unknown.
 */
export const versionInfo = (
  version: string,
  gitCommit = '',
  buildDate = '1970-01-01T00:00:00Z',
): Record<string, string> => ({
  major: /^v(\d+)/.exec(version)?.[1] ?? '',
  minor: /^v\d+\.(\d+)/.exec(version)?.[1] ?? '',
  gitVersion: version,
  gitCommit,
  gitTreeState: '',
  buildDate,
  goVersion: `node${process.versions.node}`,
  compiler: `node ${process.version}`,
  platform: `${process.platform}/${architecture()}`,
});

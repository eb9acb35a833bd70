/** Creates the content of /version: the version of Kubernetes whose API lifepod implements, and the version of lifepod. */
import { architecture } from '../../platform/architecture.ts';

/** `version` is for example v1.33.0+lifepod.0.1.0; `gitCommit` is the hash of a commit, or undefined if it is unknown. */
export const versionInfo = (version: string, gitCommit = ''): Record<string, string> => ({
  major: /^v(\d+)/.exec(version)?.[1] ?? '',
  minor: /^v\d+\.(\d+)/.exec(version)?.[1] ?? '',
  gitVersion: version,
  gitCommit,
  gitTreeState: '',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: '',
  compiler: `node ${process.version}`,
  platform: `${process.platform}/${architecture()}`,
});

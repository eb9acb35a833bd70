import { architecture } from '../../platform/architecture.ts';

/**
 * Returns the content of /version. `version`: for example v1.33.0+lifepod.0.1.0. `gitCommit` and `buildDate` are undefined if unknown.
 * Clients expect the field goVersion.
 * Source: component-base/version of v1.33, which also uses the year 1970 for an unknown date.
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

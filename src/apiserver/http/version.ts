/** Creates the content of /version: the version of Kubernetes whose API lifepod implements, and the version of lifepod. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

/** `version` is the version of lifepod, for example 0.1.0. */
export const versionInfo = (version: string): Record<string, string> => ({
  major: '1',
  minor: '33',
  gitVersion: `v1.33.0+lifepod-${version}`,
  gitCommit: '',
  gitTreeState: '',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: '',
  compiler: `node ${process.version}`,
  platform: `${process.platform}/${ARCHITECTURES[process.arch] ?? process.arch}`,
});

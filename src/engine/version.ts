/** The versions that lifepod reports. */
import { readFileSync } from 'node:fs';

interface PackageFile {
  version: string;
}

const packageFile = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as PackageFile;

export const LIFEPOD_VERSION = packageFile.version;

/** The version of Kubernetes whose API is served. */
export const KUBERNETES_VERSION = 'v1.33.0';

export function printVersion(): void {
  process.stdout.write(
    `lifepod ${LIFEPOD_VERSION} (Kubernetes API ${KUBERNETES_VERSION}, Node.js ${process.version})\n`,
  );
}

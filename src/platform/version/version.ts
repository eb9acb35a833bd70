import { readFileSync } from 'node:fs';

interface PackageFile {
  version: string;
}

const packageFile = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as PackageFile;

export const LIFEPOD_VERSION = packageFile.version;

export const KUBERNETES_VERSION = 'v1.33.0';

/** Such as v1.33.0+lifepod.0.1.0. */
export const SERVED_VERSION = `${KUBERNETES_VERSION}+lifepod.${LIFEPOD_VERSION}`;

/** The API server uses the part before the slash as the default field manager. */
export const USER_AGENT = `lifepod/${SERVED_VERSION}`;

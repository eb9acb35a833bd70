import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram } from '../../src/platform/processes.ts';

const onPath = findProgram('kubectl') ?? 'kubectl';
const ofVersion = existsSync(onPath) ? join(dirname(realpathSync(onPath)), 'kubectl.1.33') : onPath;

/**
 * The program `kubectl`, unless it is the dispatcher of the Google Cloud SDK. The dispatcher asks the server for its version and then runs
 * the kubectl of that version, which takes twice as long as that kubectl alone.
 */
export const KUBECTL = existsSync(ofVersion) ? ofVersion : onPath;

/** A program in Go then collects garbage only if it uses much memory. This saves a fifth of kubectl's processor time. */
export const FEW_COLLECTIONS = { GOGC: 'off', GOMEMLIMIT: '256MiB' };

/** kubectl 1.20 of Debian 12, which scripts/setup.sh unpacks; undefined on other distributions. */
export const OLDER_KUBECTL = [fileURLToPath(new URL('../../node_modules/.kubectl-1.20/kubectl', import.meta.url))].find(
  (path) => existsSync(path),
);

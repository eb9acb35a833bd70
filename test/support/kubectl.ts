/** The path of the kubectl that tests run. */
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findProgram } from '../../src/platform/processes.ts';

const onPath = findProgram('kubectl') ?? 'kubectl';
const ofVersion = existsSync(onPath) ? join(dirname(realpathSync(onPath)), 'kubectl.1.33') : onPath;

/**
 * The program `kubectl`, unless it is the dispatcher of the Google Cloud SDK. For each command, the dispatcher asks the server for
 * its version and then runs the kubectl of that version from its own folder, which takes twice as long as that kubectl alone.
 */
export const KUBECTL = existsSync(ofVersion) ? ofVersion : onPath;

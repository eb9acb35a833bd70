/** The paths of the checkout and of the program that starts lifepod. */
import { join } from 'node:path';

export const REPOSITORY = join(import.meta.dirname, '../..');
/** The variable in which build.ts passes the path of the launcher to the workers. */
export const LAUNCHER_VARIABLE = 'LIFEPOD_TEST_LAUNCHER';
/** The program that starts lifepod: bin/lifepod or, in projects with real engines, a copy of it that runs a build of the sources. */
export const LAUNCHER = process.env[LAUNCHER_VARIABLE] ?? join(REPOSITORY, 'bin/lifepod');

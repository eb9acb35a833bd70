import { join } from 'node:path';

export const REPOSITORY = join(import.meta.dirname, '../..');
/** build.ts passes the path of the launcher to the workers in this variable. */
export const LAUNCHER_VARIABLE = 'LIFEPOD_TEST_LAUNCHER';
/** bin/lifepod or, in projects with real engines, a copy of it that runs a build of the sources. */
export const LAUNCHER = process.env[LAUNCHER_VARIABLE] ?? join(REPOSITORY, 'bin/lifepod');

/**
 * Puts lifepod on the PATH, so that commands in messages begin with its name instead of the path of the launcher. Vitest loads this file
 * before each test file with real engines.
 */
import { delimiter, dirname } from 'node:path';
import { LAUNCHER } from './launcher.ts';

const folder = dirname(LAUNCHER);
const path = process.env['PATH'] ?? '';
if (!path.startsWith(`${folder}${delimiter}`)) process.env['PATH'] = `${folder}${delimiter}${path}`;

import type { Log } from './platform.ts';

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silentLog };

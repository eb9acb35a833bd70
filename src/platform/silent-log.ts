import type { Log } from './platform.ts';

/** A log that discards all messages, for tests and simulations. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silentLog };

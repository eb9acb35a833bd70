/**
 * Reports that rules of a table have been deleted, perhaps by another program, such as with `nft flush ruleset`.
 *
 * Boundary: runs `nft monitor rules`, which ends with this process, even if this process is killed. Elements of sets are not monitored,
 * because a transaction may delete many of them. `nft monitor` does not print which program has deleted a rule, so the deletions by the
 * owner of the table are reported as well. `nft monitor` also prints added rules: nft 1.0.7 and later do not parse `monitor destroy`.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { backOffMillis } from '../../client/back-off.ts';
import { pause } from '../../platform/pause.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { nftCommand, type TableOptions } from './nft.ts';

export interface MonitorOptions extends TableOptions {
  timers: Timers;
  log: Log;
  /** Called after rules may have been deleted, also by a program that ran while `nft monitor` did not. */
  deleted(): void;
}

export interface Monitor {
  /**
   * Starts `nft monitor` again, to free its memory: it remembers each element that has ever been added, about 0.7 kB for each with nft
   * 1.0.6.
   */
  renew(): void;
}

const RESTART_BASE_MILLIS = 100;
const RESTART_MAX_MILLIS = 60_000;
/** If `nft monitor` has run for longer, the pause before its next restart is short again. */
const STABLE_MILLIS = 30_000;

/** Runs `nft monitor`, and starts it again whenever it ends, until the signal aborts. Returns immediately. */
export function followDeletions(options: MonitorOptions): Monitor {
  let renewal = new AbortController();
  const follow = async (): Promise<void> => {
    const { timers, log, signal, deleted } = options;
    let failures = 0;
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      const startedAt = timers.now();
      renewal = new AbortController();
      const ended = runMonitor(options, AbortSignal.any([signal, renewal.signal]));
      // Rules may have been deleted while `nft monitor` did not run.
      if (!isFirst) deleted();
      const error = await ended;
      if (signal.aborted) return;
      if (renewal.signal.aborted) continue;
      failures = timers.now() - startedAt > STABLE_MILLIS ? 1 : failures + 1;
      const waitMillis = Math.round(backOffMillis(failures, RESTART_BASE_MILLIS, RESTART_MAX_MILLIS));
      log.warn('nft monitor ended; starting it again', { error, waitMillis });
      await pause(timers, waitMillis, signal);
    }
  };
  void follow();
  return { renew: () => renewal.abort() };
}

function runMonitor(options: MonitorOptions, signal: AbortSignal): Promise<string> {
  const command = nftCommand(options, ['monitor', 'rules']);
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...command], {
    stdio: ['ignore', 'pipe', 'pipe'],
    killSignal: 'SIGKILL',
    // Ctrl+C on a terminal must reach only this process.
    detached: true,
    signal,
  });
  let failure = '';
  child.stderr.on('data', (text: Buffer) => {
    failure = `${failure}${text}`.slice(-500);
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (concerns(line, options.name)) options.deleted();
  });
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, by) => resolve(failure.trim() || String(by ?? code)));
  });
}

/** Returns whether the line of `nft monitor rules` reports a deleted rule of the table, or lost events. */
export function concerns(line: string, table: string): boolean {
  const [, deletedFrom] = /^delete rule \S+ (\S+) /.exec(line) ?? [];
  return deletedFrom === table || line.startsWith('# ERROR');
}

/**
 * The engine's side of the cluster DNS: starts the DNS process, or finds one that is running, and feeds it.
 *
 * Boundary: the process (src/network/dns-server) answers the queries.
 * Invariants: a process that ends is started again at once, with a back-off if it ends again soon. Stopping the engine leaves the process
 * running, like the Pods; `lifepod down` ends it.
 */
import type { SharedInformers } from '../../client/shared-informers.ts';
import { onAbort } from '../../platform/on-abort.ts';
import { pause } from '../../platform/pause.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { createFeed } from './feed.ts';
import { type DnsConnection, endDnsProcesses, openDnsProcess } from './process.ts';

export interface DnsOptions {
  informers: SharedInformers;
  addresses: string[];
  /** 0 means any free port. */
  port: number;
  /** Such as cluster.local. */
  clusterDomain: string;
  /** The path of a resolv.conf with the name servers for names outside the cluster. */
  resolvConf: string;
  /** The file in which systemd-resolved lists the servers behind its stub, if `resolvConf` may name the stub. */
  behindStubs?: string;
  /** The path of the socket between the engine and the process. Its folder must exist. */
  socket: string;
  /** The file to which a process that fails writes its error. */
  logFile: string;
  log: Log;
  timers: Timers;
  /** The process keeps running after an abort. */
  signal: AbortSignal;
}

export interface Dns {
  port: number;
  /** Returns undefined while no process is connected. */
  pid(): number | undefined;
  /** Resolves when the connected process knows all changes that the informers have reported; immediately if none is connected. */
  flushed(): Promise<void>;
  /** Ends the process, which is not started again. */
  stop(): Promise<void>;
}

const FIRST_RESTART_MILLIS = 50;
const LONGEST_RESTART_MILLIS = 10_000;
/** A process that has run for longer is restarted without a pause. */
const STABLE_MILLIS = 30_000;

/**
 * Resolves when the process answers queries and knows all Services. Rejects with a UserError if the address is in use, and with another
 * error if no process starts or the signal aborts.
 */
export async function startDns(options: DnsOptions): Promise<Dns> {
  const { socket, logFile, log, timers, signal } = options;
  const stopping = new AbortController();
  onAbort(signal, () => stopping.abort());
  const { addresses, port, resolvConf, behindStubs } = options;
  const settings = { addresses, port, domain: options.clusterDomain.toLowerCase(), resolvConf, behindStubs };
  const feed = createFeed(options.informers, stopping.signal);
  let current: DnsConnection | undefined;

  async function open(): Promise<DnsConnection> {
    const connection = await openDnsProcess({ socket, logFile, settings, log, timers });
    if (stopping.signal.aborted) connection.socket.destroy();
    current = connection;
    await feed.attach(connection);
    return connection;
  }

  async function keepRunning(first: DnsConnection): Promise<void> {
    let connection: DnsConnection | undefined = first;
    let wait = 0;
    while (!stopping.signal.aborted) {
      const startedAt = timers.now();
      await connection?.closed;
      current = undefined;
      if (stopping.signal.aborted) return;
      if (connection !== undefined && timers.now() - startedAt > STABLE_MILLIS) wait = 0;
      log.warn('the DNS process ended; starting it again', { waitMillis: wait });
      if (wait > 0) await pause(timers, wait, stopping.signal);
      wait = Math.min(LONGEST_RESTART_MILLIS, Math.max(FIRST_RESTART_MILLIS, 2 * wait));
      if (stopping.signal.aborted) return;
      connection = await open().catch((error: Error) => {
        log.error('the DNS process does not start', { error: error.message });
        current?.socket.destroy();
        return undefined;
      });
    }
  }

  await feed.synced;
  stopping.signal.throwIfAborted();
  const first = await open();
  onAbort(stopping.signal, () => current?.socket.destroy());
  const ended = keepRunning(first);
  return {
    port: first.hello.port,
    pid: () => current?.hello.pid,
    flushed: async () => current?.confirmed('flush'),
    async stop() {
      stopping.abort();
      await ended;
      await endDnsProcesses(socket, timers);
    },
  };
}

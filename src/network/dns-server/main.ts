/**
 * The DNS process of an engine. It answers the queries of Pods even while the engine is busy, and without an engine, from the last records
 * that an engine has sent.
 *
 * Boundary: the engine starts the process and feeds it (src/network/dns); `lifepod down` ends it.
 * Invariants:
 *  1. Queries wait until the process has received all records once.
 *  2. Once it serves, the process ends only on SIGTERM, when another process takes its place, or when the file of its control socket is
 *     removed or replaced.
 *  3. It imports only what it needs, to keep its memory small, and only at its start, because the files may be replaced while it runs.
 */
import { writeFileSync } from 'node:fs';
import { Control, watchPath } from './control.ts';
import { createForwarder } from './forwarder.ts';
import { type Listener, openListener, portOf, type Serving, serve } from './listeners.ts';
import { machineServers } from './resolv-conf.ts';
import { createResponder, type Responder } from './responder.ts';
import { readArguments } from './settings.ts';
import { type PassedSocket, report, requestSockets, startSuccessor } from './take-over.ts';

/** Further queries are dropped until the records are known. */
const MAX_EARLY = 1000;

const { socket: path, settings, takesOver } = readArguments(process.argv.slice(2));
const { identity, addresses, domain } = settings;
nameProcess();
for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.once('SIGTERM', () => process.exit(0));

const synced = Promise.withResolvers<void>();
let isSynced = false;
let listeners: Listener[] = [];
let serving: Serving[] = [];
let watcher: { close(): void } | undefined;

const control = new Control({
  path,
  hello: () => ({
    identity,
    pid: process.pid,
    port: listeners[0] === undefined ? settings.port : portOf(listeners[0].tcp),
  }),
  synced: () => {
    isSynced = true;
    synced.resolve();
  },
  replace: handOver,
});
const forwarder = createForwarder({
  servers: machineServers(settings.resolvConf, settings.behindStubs, addresses),
  port: settings.serverPort,
});
const answer = createResponder({ data: () => control.data(), forwarder, domain });

let early = 0;
const answerOnceSynced: Responder = (message, transport, client) => {
  if (isSynced) return answer(message, transport, client);
  early += 1;
  return early > MAX_EARLY ? undefined : synced.promise.then(() => answer(message, transport, client));
};

const failed = (error: Error): void =>
  control.report({ log: { level: 'warn', message: 'a DNS socket or query failed', fields: { error: error.stack } } });

async function listen(): Promise<void> {
  await control.listen();
  watcher?.close();
  watcher = watchPath(path, () => process.exit(0));
}

function handOver(command: string, args: string[]): void {
  // The watcher must not end this process when the other process replaces the socket at the path.
  watcher?.close();
  startSuccessor(command, args, listeners, {
    listening() {
      control.report({ replaced: true });
      control.close();
    },
    serving() {
      void forwarder.idle().then(() => {
        for (const each of serving) each.close();
      });
    },
    failed() {
      void listen().then(() => control.report({ replaced: false }));
    },
  });
}

async function openListeners(passed: readonly PassedSocket[]): Promise<Listener[]> {
  const usable = passed.filter(
    ({ address, port }) => addresses.includes(address) && (settings.port === 0 || settings.port === port),
  );
  for (const { udp, tcp } of passed.filter((each) => !usable.includes(each))) {
    udp?.close();
    tcp?.close();
  }
  return Promise.all(
    addresses.map((address) => {
      const { udp, tcp } = usable.find((each) => each.address === address) ?? {};
      return udp === undefined || tcp === undefined ? openListener(address, settings.port) : { address, udp, tcp };
    }),
  );
}

async function serveAll(passed: readonly PassedSocket[] = []): Promise<void> {
  listeners = await openListeners(passed);
  serving = listeners.map((each) => serve(each, answerOnceSynced, failed));
  for (const release of passed.flatMap(({ releases }) => releases)) release();
}

try {
  if (takesOver) {
    await listen();
    report({ listening: true });
    await synced.promise;
    await serveAll(await requestSockets());
    report({ serving: true });
  } else {
    await serveAll();
    await listen();
    report({ listening: true });
    if (process.connected) process.disconnect();
  }
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  report({ failed: { code, message } });
  process.exitCode = 1;
  if (process.connected) process.disconnect();
  control.close();
  for (const { udp, tcp } of listeners) {
    udp.close();
    tcp.close();
  }
}

/** Sets the name that ps(1) shows. nameProcess() of src/platform/processes.ts would need more memory. */
function nameProcess(): void {
  try {
    writeFileSync('/proc/self/comm', 'lifepod-dns');
  } catch {
    // The process does not need the name.
  }
}

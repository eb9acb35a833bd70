/** `lifepod up`: the engine in the foreground, or the process that upDetached() started. */

import { type Engine, startEngine } from '../engine/engine.ts';
import { kubeconfigPath, type UpOptions } from '../engine/settings.ts';
import { LIFEPOD_VERSION } from '../engine/version.ts';
import { UserError } from '../platform/files.ts';
import { createLog, systemTimers } from '../platform/node.ts';
import { failureText } from './failures.ts';

/** What the process of an engine tells the one that started it. */
export type StartReport = { ready: ReadyEngine } | { error: string } | { waiting: string };

export interface ReadyEngine {
  server: string;
  nodeName: string;
  startMillis: number;
}

/** What `lifepod down` sends: the static Pods are the node's own, and no delete in the API ends them. */
export const END_STATIC_PODS = 'SIGUSR2';

/** What `lifepod shutdown-node` sends; init's signal for a power failure. */
export const SHUT_DOWN_NODE = 'SIGPWR';

/** Resolves when the engine has ended after SIGTERM or SIGINT. */
export async function up(options: UpOptions): Promise<void> {
  // Libraries write to them as well. Where they lead to a full disk, the engine goes on.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const stopping = new AbortController();
  let signals = 0;
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (signals++ === 0) stopping.abort(new UserError(`stopped by ${name}`));
      else process.exit(1);
    });
  }
  const asked = Promise.withResolvers<void>();
  process.on(END_STATIC_PODS, () => asked.resolve());
  const shutdown = Promise.withResolvers<void>();
  process.on(SHUT_DOWN_NODE, () => shutdown.resolve());
  const platform = { timers: systemTimers(), log: createLog({ level: options.logLevel ?? 'info' }) };
  let engine: Engine;
  try {
    engine = await startEngine(options, platform, stopping.signal, (why) => {
      if (process.send === undefined) printWaiting(why);
      else process.send({ waiting: why } satisfies StartReport);
    });
  } catch (error) {
    // What was under way fails in its own words when it is stopped.
    const failure: unknown = stopping.signal.aborted ? stopping.signal.reason : error;
    if (process.send === undefined) throw failure;
    await report({ error: failureText(failure) });
    process.exitCode = 1;
    return;
  }
  const failed = (what: string) => (error: unknown) => platform.log.error(what, { error: String(error) });
  void asked.promise.then(() => engine.endStaticPods()).catch(failed('the static Pods came to no end'));
  void shutdown.promise
    .then(() => engine.shutDownNode())
    .catch(failed('the shutdown came to no end'))
    .then(() => stopping.abort(new UserError('the machine shuts down')));
  const ready = {
    server: engine.server,
    nodeName: engine.settings.nodeName,
    startMillis: Math.round(process.uptime() * 1000),
  };
  if (process.send === undefined) printReady(options.dataDir, ready);
  else await report({ ready });
  await engine.stopped;
}

/** Sends to the starting process and lets it go. */
function report(message: StartReport): Promise<void> {
  return new Promise((resolve) => {
    process.send?.(message, undefined, {}, () => {
      if (process.connected) process.disconnect();
      resolve();
    });
  });
}

export const printWaiting = (why: string): void =>
  void process.stderr.write(`lifepod waits for the node to be ready: ${why}\n`);

/** Words for a person on standard error; on standard output what a shell can evaluate. */
export function printReady(dataDir: string, { server, nodeName, startMillis }: ReadyEngine): void {
  const seconds = (startMillis / 1000).toFixed(1);
  process.stderr.write(`lifepod ${LIFEPOD_VERSION} is ready after ${seconds} s: ${server}, node ${nodeName}\n`);
  process.stdout.write(`export KUBECONFIG=${shellQuoted(kubeconfigPath(dataDir))}\n`);
}

const shellQuoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/**
 * Measures how long other clients wait for an API server: a thread requests /healthz repeatedly. In a separate thread, the measured time
 * does not include delays of the test, whose event loop is busy.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { adminOf } from './raw-streams.ts';

/** Resolves with milliseconds. */
export async function longestWait(kubeconfig: string, attack: () => Promise<void>): Promise<number> {
  const worker = new Worker(new URL(import.meta.url), { workerData: kubeconfig });
  try {
    await once(worker, 'message');
    await attack();
    const reply = once(worker, 'message') as Promise<[number]>;
    worker.postMessage('how long?');
    return (await reply)[0];
  } finally {
    await worker.terminate();
  }
}

async function ask(kubeconfig: string): Promise<void> {
  const { host, port, ...tls } = adminOf(kubeconfig);
  const agent = new Agent({ ...tls, keepAlive: true });
  let longest = 0;
  const answered = async (): Promise<number> => {
    const asked = performance.now();
    const [answer] = (await once(request({ host, port, agent, path: '/healthz' }).end(), 'response')) as [
      IncomingMessage,
    ];
    answer.resume();
    await once(answer, 'end');
    return performance.now() - asked;
  };
  // The first request opens the connection, so it is not measured.
  await answered();
  parentPort?.postMessage('ready');
  parentPort?.once('message', () => parentPort?.postMessage(longest));
  for (;;) longest = Math.max(longest, await answered());
}

if (!isMainThread && typeof workerData === 'string') await ask(workerData);

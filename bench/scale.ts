/**
 * Measures the engine with 100 Pods of two containers, each of which has a probe per second. With two HTTP probes per Pod, the figure of
 * interest is how late the probes are. With an HTTP and an exec probe, it is the load of the engine's process, because the commands of 100
 * exec probes per second occupy two cores and delay all probes.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pod } from '../src/api/generated/types.ts';
import { BUSYBOX, cpuMillis, median, residentMebibytes, startEngine } from './engine.ts';
import { APP, createAndAwaitReady } from './pods.ts';

const PODS = 100;
const MEASURED_MILLIS = 20_000;
const PERIOD_MILLIS = 1000;

export async function scale(): Promise<void> {
  /** By the path of the probe, in milliseconds. */
  const arrivals = new Map<string, number[]>();
  const server = createServer((request, response) => {
    const name = request.url ?? '';
    arrivals.set(name, [...(arrivals.get(name) ?? []), performance.now()]);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    for (const second of ['HTTP', 'exec'] as const) await measure(second, port, arrivals);
  } finally {
    server.close();
  }
}

async function measure(second: 'HTTP' | 'exec', port: number, arrivals: Map<string, number[]>): Promise<void> {
  const engine = await startEngine();
  try {
    const began = performance.now();
    const pods = Array.from({ length: PODS }, (_, i) => pod(`scale-${i}`, port, second));
    await createAndAwaitReady(engine.client, pods);
    const seconds = (performance.now() - began) / 1000;
    console.log(
      `\n${PODS} Pods, each with an HTTP and an ${second} probe per second: Ready after ${seconds.toFixed(1)} s.`,
    );
    await pause(5000);
    arrivals.clear();
    const before = await cpuMillis(engine.pid);
    await pause(MEASURED_MILLIS);
    const share = ((await cpuMillis(engine.pid)) - before) / MEASURED_MILLIS;
    const late = lateness(arrivals);
    const count = [...arrivals.values()].flat().length;
    console.log(
      `engine: ${(await residentMebibytes(engine.pid)).toFixed(0)} MiB resident, ${(share * 100).toFixed(0)}% of a core`,
    );
    console.log(
      `HTTP probes: ${(count / (MEASURED_MILLIS / 1000)).toFixed(0)} per second; late by ${median(late).toFixed(0)} ms (median), ${percentile(late, 99).toFixed(0)} ms (99%)`,
    );
  } finally {
    await engine.stop();
  }
}

const http = (port: number, path: string) => ({ httpGet: { host: '127.0.0.1', port, path } });

const pod = (name: string, port: number, second: 'HTTP' | 'exec'): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: {
    terminationGracePeriodSeconds: 5,
    containers: [
      {
        name: 'first',
        image: BUSYBOX,
        command: APP,
        readinessProbe: { ...http(port, `/${name}/first`), periodSeconds: 1, timeoutSeconds: 5 },
      },
      {
        name: 'second',
        image: BUSYBOX,
        command: APP,
        readinessProbe: {
          ...(second === 'exec' ? { exec: { command: ['true'] } } : http(port, `/${name}/second`)),
          periodSeconds: 1,
          timeoutSeconds: 5,
        },
      },
    ],
  },
});

/**
 * Returns the lateness of each request in milliseconds. A probe sends one request per period, at an offset that is unknown here. The
 * request of a probe that has the smallest offset within its period counts as on time, and the others are late by the difference.
 */
function lateness(arrivals: Map<string, number[]>): number[] {
  return [...arrivals.values()].flatMap((times) => {
    const first = times[0] ?? 0;
    const phases = times.map((at) => (at - first + PERIOD_MILLIS / 2 + PERIOD_MILLIS) % PERIOD_MILLIS);
    const earliest = Math.min(...phases);
    return phases.map((phase) => phase - earliest);
  });
}

function percentile(values: number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN;
}

/**
 * Measures the latency of the cluster DNS at a constant rate of queries, while the engine is idle and while clients create and delete
 * Services. A bare UDP echo in another process takes turns with the DNS, so that the ratio shows what the DNS itself costs.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Service } from '../../src/api/generated/types.ts';
import { SERVICES } from '../../src/api/resources.ts';
import type { Client } from '../../src/client/client.ts';
import { question } from '../../src/network/dns-server/dns-client-fixture.ts';
import { type BenchEngine, startEngine } from '../engine.ts';
import type { Load, Measured } from './load.ts';

const QUERIES_PER_SECOND = 1000;
const TURNS = 5;
const SECONDS_OF_TURN = 4;
const CHANGES_AT_ONCE = 16;
const QUERY = question('kubernetes.default.svc.cluster.local');

export async function dns(): Promise<void> {
  const engine = await startEngine();
  try {
    const address = await dnsAddress(engine);
    const echo = fork(join(import.meta.dirname, 'echo.ts'), [address]);
    engine.beforeStop(() => ended(echo));
    const [port] = (await once(echo, 'message')) as [number];
    console.log(`
| ${QUERIES_PER_SECOND.toLocaleString('en')} queries per second | p50 | p99 | lost |
|---|---|---|---|`);
    await measure('the engine is idle', address, port);
    const busy = new AbortController();
    const changes = changeServices(engine.client, busy.signal);
    // A failure is reported below, after the engine has got the chance to stop.
    changes.catch(() => undefined);
    try {
      await measure('Services are created and deleted', address, port);
    } finally {
      busy.abort();
      console.log(`\nThe engine made ${(await changes).toLocaleString('en')} changes of Services meanwhile.`);
    }
  } finally {
    await engine.stop();
  }
}

async function dnsAddress({ client }: BenchEngine): Promise<string> {
  const { spec } = await client.resource<Service>(SERVICES).get('kube-dns', 'kube-system');
  if (spec?.clusterIP === undefined) throw new Error('the Service kube-dns has no address');
  return spec.clusterIP;
}

async function ended(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.disconnect();
  await exit;
}

async function measure(condition: string, address: string, echoPort: number): Promise<void> {
  const bare: Measured[] = [];
  const real: Measured[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    bare.push(await load({ address, port: echoPort }));
    real.push(await load({ address, port: 53 }));
  }
  const [echo, own] = [summaryOf(bare), summaryOf(real)];
  const row = (what: string, { p50, p99, lost }: Summary): string =>
    `| ${condition}: ${what} | ${p50.toFixed(0)} µs | ${p99.toFixed(0)} µs | ${lost} |`;
  console.log(row('a UDP echo', echo));
  console.log(row('the DNS', own));
  console.log(`| ratio | ${(own.p50 / echo.p50).toFixed(2)} | ${(own.p99 / echo.p99).toFixed(2)} | |`);
}

/** A separate thread sends the queries, because its event loop does nothing else. */
async function load(target: Pick<Load, 'address' | 'port'>): Promise<Measured> {
  const workerData: Load = { ...target, message: QUERY, perSecond: QUERIES_PER_SECOND, seconds: SECONDS_OF_TURN };
  const worker = new Worker(new URL('./load.ts', import.meta.url), { workerData });
  const [measured] = (await once(worker, 'message')) as [Measured];
  await worker.terminate();
  return measured;
}

interface Summary {
  /** p50 and p99 are in microseconds. */
  p50: number;
  p99: number;
  lost: number;
}

function summaryOf(turns: readonly Measured[]): Summary {
  const micros = turns.flatMap((turn) => turn.micros).sort((a, b) => a - b);
  const at = (share: number): number => micros[Math.floor(micros.length * share)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99), lost: turns.reduce((sum, { lost }) => sum + lost, 0) };
}

async function changeServices(client: Client, signal: AbortSignal): Promise<number> {
  const services = client.resource<Service>(SERVICES);
  let changes = 0;
  const change = async (_: unknown, index: number): Promise<void> => {
    const metadata = { name: `busy-${index}`, namespace: 'default' };
    while (!signal.aborted) {
      await services.create({ apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 80 }] } });
      await services.delete(metadata.name, metadata.namespace);
      changes += 2;
    }
  };
  await Promise.all(Array.from({ length: CHANGES_AT_ONCE }, change));
  return changes;
}

/**
 * Rolls a Deployment behind a Service over several times under a constant load, from another Pod and through a node port. The PreExit entry
 * of each Pod waits until its server gets no more requests (test/support/drained-server.ts), because neither the specification nor
 * Kubernetes guarantees that a Pod ends only after the rules have changed.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import type { Node, Service } from '../../src/api/generated/types.ts';
import { readAttachments } from '../../src/network/pod-network/attachments.ts';
import { networkNames } from '../../src/network/pod-network/names.ts';
import { REPOSITORY } from '../support/lifepod.ts';
import { pod } from '../support/manifests.ts';
import { NODE_JS, nodeCommand } from '../support/node-in-pod.ts';
import { lifepod, record, useOwnEngine } from '../support/own-engine.ts';
import { isReady } from '../support/pods.ts';

useOwnEngine();

const REQUESTS = 20_000;
/** Requests of each load. */
const LEAST_EACH = 2000;
const LEAST_ROLLOUTS = 3;
/** If the loads need more rollouts for their requests, they are too slow for this test. */
const MOST_ROLLOUTS = 30;
const PORT = 8080;
const PROGRAMS = join(REPOSITORY, 'test/support');

function deployment(): object {
  const spec = {
    containers: [
      {
        name: 'app',
        image: 'busybox:1.28',
        command: nodeCommand('drained-server.ts', String(PORT)),
        readinessProbe: { httpGet: { path: '/ready', port: PORT }, periodSeconds: 1, timeoutSeconds: 10 },
        volumeMounts: NODE_JS.mounts,
      },
    ],
    deferContainers: [
      {
        name: 'drain',
        image: 'busybox:1.28',
        command: ['wget', '-q', '-O', '/dev/null', `http://127.0.0.1:${PORT}/drain`],
        timeoutSeconds: 60,
      },
    ],
    terminationGracePeriodSeconds: 90,
    volumes: NODE_JS.volumes,
  };
  const labels = { app: 'web' };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: { replicas: 3, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
}

/** See test/support/request-load.ts. */
class Load {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #ended: Promise<unknown>;
  readonly servers = new Set<string>();
  readonly failures: string[] = [];
  count = 0;

  /** `prefix` is the command that runs the program, such as nsenter(1) with its options. */
  constructor(prefix: readonly string[], url: string, connections: 'fresh' | 'kept') {
    const program = [process.execPath, join(PROGRAMS, 'request-load.ts'), url, connections];
    const [command = '', ...args] = [...prefix, ...program];
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(() => void this.#child.kill());
    const lines = createInterface({ input: this.#child.stdout });
    this.#ended = once(lines, 'close');
    lines.on('line', (line) => {
      this.count += 1;
      if (/^web-/.test(line)) this.servers.add(line);
      else this.failures.push(`${url} ${connections} ${new Date().toISOString()} ${line}`);
    });
  }

  /** Resolves when the last requests have their responses. */
  async end(): Promise<void> {
    this.#child.stdin.end();
    await this.#ended;
  }
}

async function networkOf(name: string): Promise<string[]> {
  const { status } = await record.until(name, isReady);
  const { dataDir } = lifepod;
  const attachments = await readAttachments(networkNames({ dataDir, instance: dataDir }).network);
  const own = [...attachments.values()].find(({ addresses }) => addresses.includes(status?.podIP ?? ''));
  return ['nsenter', `--net=${own?.namespace}`];
}

const ROLLED_OUT = ['rollout', 'status', 'deployment/web', '--timeout=100s'];

test('a Deployment is rolled over several times without a failed request among 20,000', async () => {
  await lifepod.apply(pod('client'));
  await lifepod.apply(deployment());
  const spec = { type: 'NodePort', selector: { app: 'web' }, ports: [{ port: 80, targetPort: PORT }] };
  await lifepod.apply({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec });
  await lifepod.kubectlOk(...ROLLED_OUT);
  const { clusterIP, ports } = (await lifepod.get<Service>('service', 'web')).spec ?? {};
  const { status } = await lifepod.get<Node>('node', lifepod.nodeName);
  const [inside, outside] = [
    `http://${clusterIP}/`,
    `http://${status?.addresses?.[0]?.address}:${ports?.[0]?.nodePort}/`,
  ];
  const responds = (): Promise<boolean> =>
    fetch(inside).then(
      ({ ok }) => ok,
      () => false,
    );
  await expect.poll(responds, { timeout: 60_000, interval: 250 }).toBe(true);

  const client = await networkOf('client');
  const loads = [new Load(client, inside, 'fresh'), new Load(client, inside, 'kept'), new Load([], outside, 'fresh')];
  const isEnough = (): boolean =>
    loads.every(({ count }) => count >= LEAST_EACH) && loads.reduce((sum, { count }) => sum + count, 0) >= REQUESTS;
  let rollouts = 0;
  while ((rollouts < LEAST_ROLLOUTS || !isEnough()) && rollouts < MOST_ROLLOUTS) {
    await lifepod.kubectlOk('rollout', 'restart', 'deployment/web');
    await lifepod.kubectlOk(...ROLLED_OUT);
    rollouts += 1;
  }
  await Promise.all(loads.map((load) => load.end()));
  console.log(`${rollouts} rollouts; requests of each load: ${loads.map(({ count }) => count).join(', ')}`);
  expect(loads.flatMap(({ failures }) => failures)).toEqual([]);
  expect(isEnough()).toBe(true);
  for (const { servers } of loads) expect(servers.size).toBeGreaterThan(rollouts);
});

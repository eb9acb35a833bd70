import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import type { Pod } from '../../../src/api/generated/types.ts';
import { networkNames } from '../../../src/network/pod-network/names.ts';
import { untilAborted } from '../../../src/platform/on-abort.ts';
import { runCommand } from '../../../src/platform/processes.ts';
import { containerGroup, processesOf } from '../../support/control-groups.ts';
import { pod } from '../../support/manifests.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';

const [ALLOWED, REFUSED] = [8080, 8081];
const DEADLINE_MILLIS = 60_000;

useOwnEngine();

async function start(name: string): Promise<Pod> {
  await lifepod.apply(pod(name, { labels: { app: name } }));
  await lifepod.wait('--for=condition=Ready', `pod/${name}`);
  return lifepod.get<Pod>('pod', name);
}

/** Ends with the test. Returns the output of the program. */
function runIn(of: Pod, program: string): NodeJS.ReadableStream {
  const pid = processesOf(containerGroup(lifepod.dataDir, of, 'app'))[0];
  const args = [`--net=/proc/${pid}/ns/net`, process.execPath, '-e', program];
  const child = spawn('nsenter', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(async () => {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  });
  return child.stdout;
}

const RECEIVE = [ALLOWED, REFUSED].map(
  (port) =>
    `require('node:dgram').createSocket('udp4').on('message', () => console.log(${port})).bind(${port}, () => console.log('bound'));`,
);
/** The program sends from one socket for each port, so that both flows last for the whole test. */
const send = (address: string): string =>
  [ALLOWED, REFUSED]
    .map(
      (port) =>
        `{ const s = require('node:dgram').createSocket('udp4').on('error', () => {});
           setInterval(() => s.send('x', ${port}, '${address}'), 5); }`,
    )
    .join('');

/** Counts equal lines. more() resolves when `count` further lines are equal to `line`. */
class Received {
  readonly counts = new Map<string, number>();
  #changed = Promise.withResolvers<void>();

  constructor(output: NodeJS.ReadableStream) {
    createInterface({ input: output }).on('line', (line) => {
      this.counts.set(line, (this.counts.get(line) ?? 0) + 1);
      this.#changed.resolve();
      this.#changed = Promise.withResolvers();
    });
  }

  count(line: string | number): number {
    return this.counts.get(String(line)) ?? 0;
  }

  async more(line: string | number, count: number): Promise<void> {
    const enough = this.count(line) + count;
    const late = AbortSignal.timeout(DEADLINE_MILLIS);
    while (this.count(line) < enough) await untilAborted(late, this.#changed.promise);
  }
}

test('a socket that a NetworkPolicy refuses is refused all the time while the engine is killed and starts, and no rule is left after down', async () => {
  const spec = {
    podSelector: { matchLabels: { app: 'web' } },
    ingress: [{ ports: [{ protocol: 'UDP', port: ALLOWED }] }],
  };
  await lifepod.apply({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'web' }, spec });
  const [web, client] = [await start('web'), await start('client')];
  const received = new Received(runIn(web, RECEIVE.join('')));
  await received.more('bound', 2);
  runIn(client, send(web.status?.podIP ?? ''));
  await received.more(ALLOWED, 20);
  await lifepod.kill('SIGKILL');
  await received.more(ALLOWED, 20);
  await lifepod.up();
  await received.more(ALLOWED, 20);
  // The label makes the new engine write the rules.
  await lifepod.kubectlOk('label', 'pod', 'client', 'changed=yes');
  await received.more(ALLOWED, 20);
  expect(received.count(REFUSED)).toBe(0);

  await lifepod.delete('networkpolicy', 'web');
  await received.more(REFUSED, 20);
  await lifepod.apply({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'web' }, spec });
  await lifepod.cliOk('down');
  const { table } = networkNames({ dataDir: lifepod.dataDir, instance: lifepod.dataDir });
  expect((await runCommand('nft', ['list', 'tables'])).stdout).not.toContain(table);
}, 180_000);

/** The informer is that of client-go, upstream's own library, in protobuf over HTTP/2. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import type { ConfigMap } from '../../src/api/generated/types.ts';
import { CONFIG_MAPS } from '../../src/api/resources.ts';
import type { ResourceClient } from '../../src/client/client.ts';
import { clientFromKubeconfig, readKubeconfig } from '../../src/client/kubeconfig.ts';
import { runCommand } from '../../src/platform/processes.ts';
import { REPOSITORY } from '../support/lifepod.ts';
import { lifepod, useOwnEngine } from '../support/own-engine.ts';

useOwnEngine();

const SOURCE = join(REPOSITORY, 'test/clients/informer');
const BUILT = join(REPOSITORY, 'node_modules/.client-go');
const RUN_MILLIS = 60_000;
/** Before each kill. */
const WRITES = 20;

/** Rejects if the informer ends before it has printed the line. */
function startInformer(): {
  child: ChildProcessWithoutNullStreams;
  lines: string[];
  until(line: string): Promise<void>;
} {
  const child = spawn(join(BUILT, 'informer'), [lifepod.kubeconfig, 'default']);
  const lines: string[] = [];
  const printed = new EventTarget();
  child.stderr.resume();
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    printed.dispatchEvent(new Event('line'));
  });
  child.once('exit', () => printed.dispatchEvent(new Event('line')));
  return {
    child,
    lines,
    async until(line) {
      while (!lines.includes(line)) {
        if (child.exitCode !== null) throw new Error(`the informer ended:\n${lines.join('\n')}`);
        await once(printed, 'line');
      }
    },
  };
}

const configMap = (name: string, version: number): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data: { version: String(version) },
});

const maps = async (): Promise<ResourceClient<ConfigMap>> =>
  (await clientFromKubeconfig(lifepod.kubeconfig)).resource<ConfigMap>(CONFIG_MAPS);

async function writeUntilKilled(round: number): Promise<void> {
  const client = await maps();
  const kill = Math.floor(Math.random() * WRITES);
  let killed: Promise<void> | undefined;
  for (let index = 0; index < WRITES; index++) {
    const name = `map-${round}-${index}`;
    const writes = client
      .create(configMap(name, 0))
      .then(() => client.update(configMap(name, 1)))
      .then(() => (index % 2 === 0 ? client.delete(`map-${round - 1}-${index}`, 'default') : undefined));
    if (index === kill) killed = lifepod.kill('SIGKILL');
    // A write that the kill interrupts has an unknown outcome. The informer must show the outcome, whichever it is.
    await writes.catch(() => undefined);
    if (killed !== undefined) break;
  }
  await killed;
}

test('an informer of client-go in protobuf has the right objects after a minute in which the engine is killed again and again', async ({
  skip,
}) => {
  const built = await runCommand('bash', [join(SOURCE, 'build.sh'), BUILT]);
  skip(built.code === 3, built.stdout.trim());
  expect(built.code, built.stderr).toBe(0);
  // The informer knows only one address of the API, so the engine must keep its port.
  const { port } = new URL((await readKubeconfig(lifepod.kubeconfig)).server);
  lifepod.options.push('--port', port);
  const informer = startInformer();
  try {
    await informer.until('synced');
    const until = performance.now() + RUN_MILLIS;
    for (let round = 1; performance.now() < until; round++) {
      await writeUntilKilled(round);
      await lifepod.up();
    }
    await (await maps()).create(configMap('end', 0));
    await informer.until('add end 0');
    // The engine counts connections since its last start. One of them is that of kubectl, which reads the metrics.
    const metrics = await lifepod.kubectlOk('get', '--raw', '/metrics');
    const [, opened] = /^lifepod_apiserver_connections_total\{protocol="HTTP\/2"\} (\d+)$/m.exec(metrics) ?? [];
    expect(Number(opened)).toBeGreaterThan(1);
    const { items } = await (await maps()).list({ namespace: 'default' });
    informer.child.stdin.end();
    await once(informer.child, 'close');
    expect(informer.lines.filter((line) => line.startsWith('cached'))).toEqual(
      items.map(({ metadata, data }) => `cached ${metadata.name} ${data?.['version'] ?? ''}`).sort(),
    );
    expect(informer.lines.filter((line) => line.startsWith('update')).length).toBeGreaterThan(0);
  } finally {
    informer.child.kill('SIGKILL');
  }
}, 900_000);

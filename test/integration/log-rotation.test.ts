import { readdirSync, readFileSync, statSync, watch } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Node, Pod } from '../../src/api/generated/types.ts';
import { object, PODS, pod, ref, startRegistry } from '../../src/apiserver/registry/testing.ts';
import { withInformers } from '../../src/client/registry-fixture.ts';
import { clientOf } from '../../src/client/typed-client.ts';
import { uidOf } from '../../src/machinery/meta.ts';
import { type NodeAgent, startNodeAgent } from '../../src/node/agent.ts';
import { rotatedFiles } from '../../src/node/logs/log-files.ts';
import { readCapacity } from '../../src/node/status/machine-facts.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import type { LogOptions } from '../../src/ports/node-connection.ts';
import { BUSYBOX, quiet, type RealRuntime, startRealRuntime } from './containerd-fixture.ts';

const LINES = 20_000;
const MAX_BYTES = 256 * 1024;
const MAX_FILES = 4;
const SCRIPT = `
trap 'exit 0' TERM
trap 'echo a line later' USR1
i=0
while [ $i -lt ${LINES} ]; do
  if [ $((i % 100)) = 0 ]; then echo "line $i to standard error" >&2; usleep 40000
  else echo "line $i, which has some more words so that the file grows faster than its number of lines"; fi
  i=$((i + 1))
done
echo the last line
while :; do sleep 3600 & wait $!; done`;

let real: RealRuntime;
let agent: NodeAgent;
let closeRegistry: () => void;
const stop = new AbortController();
const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(150_000)]);
let created: Pod;

beforeAll(async () => {
  real = await startRealRuntime();
  const { registry } = await startRegistry();
  closeRegistry = () => registry.close();
  await registry.create(ref('nodes'), undefined, object('Node', 'node-1') as Node);
  const container = { name: 'app', image: BUSYBOX, command: ['sh', '-c', SCRIPT] };
  const spec = { nodeName: 'node-1', automountServiceAccountToken: false, containers: [container] };
  created = (await registry.create(PODS, 'default', pod('writer', spec))) as Pod;
  agent = await startNodeAgent(
    withInformers({
      timers: systemTimers(),
      log: quiet,
      client: clientOf(registry),
      runtime: real.runtime,
      runtimeName: 'containerd',
      nodeName: 'node-1',
      nodeIps: [real.where.gateway],
      dataDir: real.where.dataDir,
      capacity: await readCapacity({ folder: real.where.dataDir }),
      clusterDns: [],
      clusterDomain: 'cluster.local',
      logRotation: { maxBytes: MAX_BYTES, maxFiles: MAX_FILES, intervalMillis: 200 },
      signal,
    }),
  );
  await new Promise<void>((resolve, reject) => {
    const watching = new AbortController();
    const running = (event: { object: unknown }): void => {
      if ((event.object as Pod).status?.containerStatuses?.[0]?.state?.running === undefined) return;
      watching.abort();
      resolve();
    };
    registry
      .watch(PODS, { namespace: 'default' }, running, AbortSignal.any([signal, watching.signal]))
      .then(() => signal.aborted && reject(signal.reason as Error), reject);
  });
});
afterAll(async () => {
  stop.abort();
  closeRegistry?.();
  await real?.close();
});

async function read(options: LogOptions, until?: string): Promise<string[]> {
  const { name, namespace = '', uid = '' } = created.metadata;
  let text = '';
  for await (const chunk of agent.connection.logs({ name, namespace, uid }, 'app', options, signal)) {
    text += Buffer.from(chunk).toString();
    if (until !== undefined && text.endsWith(until)) break;
  }
  return text.trimEnd().split('\n');
}
async function execute(...command: string[]): Promise<void> {
  const { containers = [] } = (await real.runtime.observeAll(signal)).get(uidOf(created)) ?? {};
  await real.runtime.execSync(containers[0]?.id ?? '', command, 10_000, signal);
}
const folder = (): string => join(real.where.dataDir, 'logs', 'pods', `default_writer_${created.metadata.uid}`, 'app');

test('following a log continues across rotations and loses no line', async () => {
  const lines = await read({ follow: true }, 'the last line\n');
  const numbers = (words: RegExp): number[] =>
    lines.flatMap((line) => (words.test(line) ? [Number(/\d+/.exec(line)?.[0])] : []));
  const expected = Array.from({ length: LINES }, (_, index) => index);
  expect(numbers(/^line \d+, which/)).toEqual(expected.filter((index) => index % 100 !== 0));
  expect(numbers(/^line \d+ to standard error$/)).toEqual(expected.filter((index) => index % 100 === 0));
  expect(lines).toHaveLength(LINES + 1);
  await rotatedToTheEnd();
});

/** Resolves when the current file is smaller than the limit, so no rotation follows, and all older files but the newest are compressed. */
const rotatedToTheEnd = (): Promise<void> =>
  new Promise((resolve) => {
    const look = (): void => {
      const size = statSync(join(folder(), '0.log'), { throwIfNoEntry: false })?.size;
      if (size === undefined || size >= MAX_BYTES) return;
      if (readdirSync(folder()).filter((name) => !name.endsWith('.gz')).length > 2) return;
      watcher.close();
      resolve();
    };
    const watcher = watch(folder(), look);
    look();
  });

test('rotation keeps the newest files and compresses all but the newest rotated file', async () => {
  let files = await rotatedFiles(join(folder(), '0.log'));
  // On a busy machine, the container may have written all its lines before the second rotation.
  for (; files.length < MAX_FILES - 1; files = await rotatedFiles(join(folder(), '0.log'))) {
    await execute('sh', '-c', `yes "a line that fills the file" | head -n 5000 > /proc/1/fd/1`);
    await rotatedToTheEnd();
  }
  const name = /0\.log\.\d{8}-\d{6}(-\d{3})?(\.gz)?$/;
  expect(files.map((file) => name.exec(file)?.[2])).toEqual(['.gz', '.gz', undefined]);
  expect(readdirSync(folder())).toHaveLength(MAX_FILES);
  const sizes = files.map((file) => statSync(file).size);
  // Each file was rotated when it had reached the limit. The newest rotated file is not compressed.
  expect(sizes[2]).toBeGreaterThanOrEqual(MAX_BYTES);
  const oldest = gunzipSync(readFileSync(files[0] ?? '')).toString();
  expect(oldest.length).toBeGreaterThanOrEqual(MAX_BYTES);
  expect(oldest).toMatch(/^\d{4}-\d\d-\d\dT\S+ std(out|err) F (a )?line /);
});

test('reading a log without following reads the current file only, as upstream does', async () => {
  for (const count of [1, 2, 3, 4]) {
    await execute('kill', '-USR1', '1');
    await read({ follow: true, tailLines: count }, 'a line later\n'.repeat(count));
  }
  const current = readFileSync(join(folder(), '0.log'), 'utf8').trimEnd().split('\n');
  const contents = current.map((line) => line.split(' ').slice(3).join(' '));
  expect(await read({})).toEqual(contents);
  expect(await read({ tailLines: 3 })).toEqual(contents.slice(-3));
  expect(await read({ tailLines: LINES })).toEqual(contents);
  expect(await read({ sinceSeconds: 3600 })).toEqual(contents);
  expect(contents.slice(-4)).toEqual(Array(4).fill('a line later'));
});

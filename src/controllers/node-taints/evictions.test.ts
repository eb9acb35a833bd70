import { expect, test } from 'vitest';
import type { Node } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import { formatTime } from '../../machinery/time.ts';
import { backend, controllerOptions, settled, stopControllers, timers, useRegistry } from '../controller-fixture.ts';
import { startNodeTaints } from './node-taints.ts';

useRegistry();

async function report(name: string, ready: string, zone = 'a'): Promise<void> {
  const existing = (backend.objects(NODES) as Node[]).find(({ metadata }) => metadata.name === name);
  const status = { conditions: [{ type: 'Ready', status: ready, lastTransitionTime: formatTime(timers.now()) }] };
  if (existing !== undefined) return backend.setStatus(NODES, undefined, name, status);
  const labels = { 'topology.kubernetes.io/zone': zone };
  await backend.set<Node>(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, status });
}
const reportAll = async (names: string[], ready: string, zone?: string): Promise<void> => {
  for (const name of names) await report(name, ready, zone);
};
const names = (begin: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${begin}${i + 1}`);
const start = async (): Promise<void> => {
  await startNodeTaints(controllerOptions());
  await settled();
};
/** Lists the nodes with a NoExecute taint as `NAME KEY`. */
const evicting = (): string[] =>
  (backend.objects(NODES) as Node[]).flatMap(({ metadata, spec }) =>
    (spec?.taints ?? [])
      .filter(({ effect }) => effect === 'NoExecute')
      .map(({ key }) => `${metadata.name} ${key.split('/')[1]}`),
  );
const pass = async (seconds: number): Promise<void> => {
  timers.advance(seconds * 1000);
  await settled();
};

test('nodes of a zone get the taint one every 10 s', async () => {
  await reportAll(names('n', 6), 'True');
  await start();
  await reportAll(['n1', 'n2', 'n3'], 'Unknown');
  await pass(29);
  expect(evicting()).toEqual([]);
  await pass(1);
  expect(evicting()).toHaveLength(1);
  await pass(9);
  expect(evicting()).toHaveLength(1);
  await pass(1);
  expect(evicting()).toHaveLength(2);
  await pass(10);
  expect(evicting()).toEqual(names('n', 3).map((name) => `${name} unreachable`));
});

test('a node that becomes ready before its turn gets no taint and delays no other node', async () => {
  await reportAll(names('n', 6), 'True');
  await start();
  await reportAll(['n1', 'n2', 'n3'], 'Unknown');
  await pass(30);
  const [first = ''] = evicting();
  const [second = '', third = ''] = ['n1', 'n2', 'n3'].filter((name) => !first.startsWith(name));
  await report(second, 'True');
  await pass(10);
  expect(evicting()).toEqual([first, `${third} unreachable`].sort());
});

test('in a small zone of which 55 % are not ready, no node gets the taint until enough nodes are ready again', async () => {
  await reportAll(names('n', 5), 'True');
  await reportAll(['other'], 'True', 'b');
  await start();
  await reportAll(['n1', 'n2', 'n3'], 'Unknown');
  await pass(3600);
  expect(evicting()).toEqual([]);
  await report('n3', 'True');
  await pass(9);
  expect(evicting()).toEqual([]);
  await pass(1);
  expect(evicting()).toEqual(['n1 unreachable']);
});

test('a zone in which no node is ready is evicted like a healthy one while nodes of other zones are ready', async () => {
  await reportAll(names('n', 4), 'True');
  await reportAll(['other'], 'True', 'b');
  await start();
  await reportAll(names('n', 4), 'Unknown');
  for (let count = 1; count <= 4; count++) {
    await pass(count === 1 ? 30 : 10);
    expect(evicting()).toHaveLength(count);
  }
});

test('once no node is ready, all nodes lose the taint; once one is ready again, the others get it 30 s later', async () => {
  await reportAll(['a', 'b', 'c'], 'True');
  await start();
  await report('a', 'Unknown');
  await pass(30);
  expect(evicting()).toEqual(['a unreachable']);
  await reportAll(['b', 'c'], 'Unknown');
  await settled();
  expect(evicting()).toEqual([]);
  await pass(3600);
  expect(evicting()).toEqual([]);
  await report('c', 'True');
  await pass(29);
  expect(evicting()).toEqual([]);
  await pass(1);
  expect(evicting()).toHaveLength(1);
  await pass(10);
  expect(evicting()).toEqual(['a unreachable', 'b unreachable']);
});

test('the only node of a cluster never gets the taint', async () => {
  await report('n', 'False');
  await start();
  await pass(3600);
  expect(evicting()).toEqual([]);
});

test('a node keeps the taint over a start of the engine, and its key follows the state at once', async () => {
  await reportAll(['a', 'b', 'c', 'd'], 'True');
  await start();
  await report('a', 'Unknown');
  await pass(30);
  expect(evicting()).toEqual(['a unreachable']);
  stopControllers();
  await start();
  expect(evicting()).toEqual(['a unreachable']);
  await report('a', 'False');
  await settled();
  expect(evicting()).toEqual(['a not-ready']);
  await report('a', 'True');
  await settled();
  expect(evicting()).toEqual([]);
});

test('a node that becomes not ready causes two writes of its taints, and none of another node', async () => {
  await reportAll(names('n', 40), 'True');
  await start();
  backend.calls.length = 0;
  await report('n1', 'Unknown');
  await pass(60);
  expect(backend.calls).toEqual(['update nodes /n1', 'update nodes /n1']);
});

/** Tests how many Pods the controllers of lost nodes examine when one node of many changes. */
import { expect, test } from 'vitest';
import type { Node, Pod } from '../../api/generated/types.ts';
import { NODES, PODS } from '../../api/resources.ts';
import type { Informer } from '../../client/informer.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { ControllerOptions } from '../controller.ts';
import { backend, controllerOptions, settled, timers, useRegistry } from '../controller-fixture.ts';
import { startNodeTaints } from '../node-taints/node-taints.ts';
import { startPodGc } from '../pod-gc/pod-gc.ts';
import { startTaintEviction } from '../taint-eviction/taint-eviction.ts';
import { CONFIRM_MILLIS, GRACE_MILLIS, startNodeLifecycle } from './node-lifecycle.ts';

useRegistry();

const NODE_COUNT = 20;
const PODS_PER_NODE = 20;

function counted(options: ControllerOptions): { options: ControllerOptions; examined: () => number } {
  let examined = 0;
  const count = <T extends Iterable<unknown>>(pods: T): T => {
    examined += [...pods].length;
    return pods;
  };
  const follow = ((...args: Parameters<typeof options.informers.follow>): Informer<KubeObject> => {
    const informer = options.informers.follow(...args);
    if (args[0].resource !== PODS.resource) return informer;
    return { ...informer, list: () => count(informer.list()), by: (keysOf, key) => count(informer.by(keysOf, key)) };
  }) as typeof options.informers.follow;
  const informers = { ...options.informers, follow };
  return { options: { ...options, informers }, examined: () => examined };
}

test('the loss of one node examines only the Pods of that node', async () => {
  for (let n = 1; n <= NODE_COUNT; n++) {
    const status = { conditions: [{ type: 'Ready', status: 'True' }] };
    await backend.set<Node>(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: `n${n}` }, status });
    for (let p = 1; p <= PODS_PER_NODE; p++) {
      const spec = { nodeName: `n${n}`, containers: [{ name: 'app', image: 'x' }] };
      const metadata = { name: `p${n}-${p}`, namespace: 'a' };
      await clientOf(backend).resource<Pod>(PODS).create({ apiVersion: 'v1', kind: 'Pod', metadata, spec });
    }
  }
  const { options, examined } = counted(controllerOptions());
  const all = [startNodeLifecycle, startNodeTaints, startTaintEviction, startPodGc];
  await Promise.all(all.map((start) => start(options)));
  await settled();
  const beat = async (): Promise<void> => {
    for (let n = 2; n <= NODE_COUNT; n++) {
      const lastHeartbeatTime = new Date(timers.now()).toISOString();
      const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime }];
      await backend.setStatus(NODES, undefined, `n${n}`, { conditions });
    }
    await settled();
  };
  const atStart = examined();
  // The first node becomes silent: its Pods become not Ready and are evicted. After the Node is removed, its Pods fail.
  const whole = GRACE_MILLIS + CONFIRM_MILLIS + 400_000;
  for (let passed = 0; passed < whole; passed += 40_000) {
    timers.advance(40_000);
    await beat();
  }
  const evicted = backend.objects(PODS).filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
  expect(evicted.map(({ metadata }) => metadata.name.split('-')[0])).toEqual(Array(PODS_PER_NODE).fill('p1'));
  await backend.remove(NODES, undefined, 'n1');
  await settled();
  timers.advance(40_000);
  await settled();
  expect(backend.objects(PODS)).toHaveLength((NODE_COUNT - 1) * PODS_PER_NODE);
  // Each controller reads the Pods of the node a few times.
  expect((examined() - atStart) / PODS_PER_NODE).toBeLessThan(20);
});

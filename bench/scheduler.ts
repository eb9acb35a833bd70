/**
 * Measures the decisions of the scheduler alone: Pods are placed one after another on nodes that all have room. The peer counts the Pods of
 * all nodes again for each decision instead of keeping sums.
 */
import type { Node, Pod } from '../src/api/generated/types.ts';
import { NodePods, type PodsOnNode, podsByNode } from '../src/scheduling/node-pods.ts';
import { schedule } from '../src/scheduling/schedule.ts';

const PODS = 2000;
const NODES = 50;

const nodes = Array.from(
  { length: NODES },
  (_, index): Node => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: `node-${index}` },
    spec: {},
    status: { allocatable: { cpu: '64', memory: '256Gi', pods: '110' } },
  }),
);

const podOf = (index: number): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: `pod-${index}`, namespace: 'default', uid: String(index) },
  spec: {
    containers: [
      { name: 'app', image: 'x', resources: { requests: { cpu: '100m', memory: `${64 + (index % 64)}Mi` } } },
    ],
  },
});

function microsPerDecision(
  podsOn: (node: string) => PodsOnNode,
  bound: (pod: Pod) => void,
  prepare = () => {},
): number {
  const began = performance.now();
  for (let index = 0; index < PODS; index++) {
    prepare();
    const pod = podOf(index);
    const placement = schedule(pod, nodes, podsOn);
    if (!('node' in placement)) throw new Error(placement.message);
    bound({ ...pod, spec: { ...pod.spec, nodeName: placement.node } } as Pod);
  }
  return ((performance.now() - began) * 1000) / PODS;
}

export async function scheduler(): Promise<void> {
  const all: Pod[] = [];
  let counted: (node: string) => PodsOnNode = podsByNode([]);
  const recount = microsPerDecision(
    (node) => counted(node),
    (pod) => all.push(pod),
    () => {
      counted = podsByNode(all);
    },
  );
  const sums = new Map(nodes.map(({ metadata }) => [metadata.name, new NodePods()]));
  const kept = microsPerDecision(
    (node) => sums.get(node) as NodePods,
    (pod) => sums.get(pod.spec?.nodeName ?? '')?.set(pod),
  );
  console.log(`${PODS} Pods on ${NODES} nodes, one decision: ${kept.toFixed(0)} µs with sums,`);
  console.log(`${recount.toFixed(0)} µs if all Pods are counted again: ${(recount / kept).toFixed(1)} times as long`);
}

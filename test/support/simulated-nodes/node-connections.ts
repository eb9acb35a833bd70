import { uidOf } from '../../../src/machinery/meta.ts';
import { notFound, serviceUnavailable } from '../../../src/machinery/status.ts';
import type { NodeConnection, PodRef } from '../../../src/ports/node-connection.ts';
import type { NodeReports } from '../../../src/ports/node-reports.ts';
import type { SimulatedNode } from './simulated-node.ts';

/**
 * Passes each call to the agent of the Pod. A call fails with NotFound if no agent has the Pod. Simulated nodes report no usage and serve
 * no documents.
 */
export function connectionTo(nodes: ReadonlyMap<string, SimulatedNode>): NodeConnection & NodeReports {
  const agents = () => [...nodes.values()].flatMap(({ agent }) => (agent === undefined ? [] : [agent]));
  const of = ({ uid, name }: PodRef): NodeConnection => {
    const found = agents().find((agent) => agent.pods().some(({ pod }) => uidOf(pod) === uid));
    if (found === undefined) throw notFound({ group: '', resource: 'pods' }, name);
    return found.connection;
  };
  return {
    logs: (pod, ...query) => of(pod).logs(pod, ...query),
    exec: async (pod, ...query) => of(pod).exec(pod, ...query),
    execTurn: async () => () => undefined,
    attach: async (pod, ...query) => of(pod).attach(pod, ...query),
    portForward: async (pod, ...query) => of(pod).portForward(pod, ...query),
    usage: async () => {
      throw serviceUnavailable('simulated nodes report no usage');
    },
    document: async (node) => {
      throw serviceUnavailable(`the simulated node ${node} serves no documents`);
    },
  };
}

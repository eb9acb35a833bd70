/** Source: pkg/kubelet/kubelet_node_status.go of v1.33 (reasons, wording). */

import type { Node, NodeStatus } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { createEventRecorder } from '../../client/events.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';
import type { Log, Timers } from '../../platform/platform.ts';

/** The reasons when the condition becomes True, and when it becomes False or Unknown. */
const CONDITION_EVENTS: Readonly<Record<string, readonly [holds: string, holdsNot: string]>> = {
  Ready: ['NodeReady', 'NodeNotReady'],
  MemoryPressure: ['NodeHasInsufficientMemory', 'NodeHasSufficientMemory'],
  DiskPressure: ['NodeHasDiskPressure', 'NodeHasNoDiskPressure'],
  PIDPressure: ['NodeHasInsufficientPID', 'NodeHasSufficientPID'],
};

export interface NodeEventsOptions {
  client: Client;
  informers: SharedInformers;
  nodeName: string;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
}

export interface NodeEvents {
  /** Records Events for the changes between the status in the API and the new status. */
  reported(before: NodeStatus | undefined, status: NodeStatus): void;
}

/** Records an Event for the start of the agent, and from then on for every change of spec.unschedulable by any client. */
export function createNodeEvents({ client, informers, nodeName, timers, log, signal }: NodeEventsOptions): NodeEvents {
  const events = createEventRecorder(client, { component: 'kubelet', host: nodeName, timers, log, signal });
  // Events about a Node use the node's name as the UID, as upstream's Events do.
  const subject: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName, uid: nodeName } };
  const is = (what: string): void => events.event(subject, 'Normal', what, `Node ${nodeName} status is now: ${what}`);

  events.event(subject, 'Normal', 'Starting', 'Starting kubelet.');
  informers.follow<Node>(
    NODES,
    { fieldSelector: `metadata.name=${nodeName}`, signal },
    {
      updated({ spec }, old) {
        const closed = spec?.unschedulable === true;
        if (closed !== (old.spec?.unschedulable === true)) is(closed ? 'NodeNotSchedulable' : 'NodeSchedulable');
      },
    },
  );
  return {
    reported(before, { conditions, nodeInfo }) {
      const wasBoot = before?.nodeInfo?.bootID;
      if (wasBoot && nodeInfo !== undefined && nodeInfo.bootID !== wasBoot) {
        const message = `Node ${nodeName} has been rebooted, boot id: ${nodeInfo.bootID}`;
        events.event(subject, 'Warning', 'Rebooted', message);
      }
      for (const { type, status } of conditions ?? []) {
        const was = before?.conditions?.find((each) => each.type === type)?.status;
        const words = CONDITION_EVENTS[type];
        if (was !== undefined && was !== status && words !== undefined) is(words[status === 'True' ? 0 : 1]);
      }
    },
  };
}

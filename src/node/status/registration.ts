import type { Node } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { isApiError } from '../../machinery/status.ts';
import { architecture } from '../../platform/architecture.ts';

export interface RegistrationOptions {
  client: Client;
  nodeName: string;
  /** IPv4 first. */
  podCidrs: readonly string[];
  /** In addition to the labels that every Node has. */
  labels?: Readonly<Record<string, string>>;
}

export function nodeLabels(nodeName: string): Record<string, string> {
  const arch = architecture();
  return {
    'beta.kubernetes.io/arch': arch,
    'beta.kubernetes.io/os': 'linux',
    'kubernetes.io/arch': arch,
    'kubernetes.io/hostname': nodeName,
    'kubernetes.io/os': 'linux',
  };
}

/** Creates the Node, or updates the labels and the Pod CIDRs of an existing one. */
export async function registerNode({ client, nodeName, podCidrs, labels: more }: RegistrationOptions): Promise<Node> {
  const nodes = client.resource<Node>(NODES);
  const labels = { ...more, ...nodeLabels(nodeName) };
  const spec = { podCIDR: podCidrs[0], podCIDRs: [...podCidrs] };
  for (;;) {
    try {
      // A patch does not conflict with concurrent writes of other clients.
      const patch = { metadata: { labels }, spec };
      return await nodes.patch(nodeName, undefined, 'application/merge-patch+json', patch);
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
    try {
      return await nodes.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName, labels }, spec });
    } catch (error) {
      if (!isApiError(error, 'AlreadyExists')) throw error;
    }
  }
}

import type { NetworkPolicy, Pod } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import { createEventRecorder } from '../../client/events.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { ownerOfPart } from './policy-parts.ts';

export interface ReporterOptions {
  client: Client;
  nodeName: string;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
  policy(namespace: string, name: string): NetworkPolicy | undefined;
  podAt(address: string): Pod | undefined;
}

export function rejectionReporter(options: ReporterOptions): (part: string, error: Error) => void {
  const { client, nodeName, log } = options;
  const events = createEventRecorder(client, { component: 'network-policies', host: nodeName, ...options });
  const warn = (object: KubeObject | undefined, message: string): void => {
    if (object !== undefined) events.event(object, 'Warning', 'RulesRejected', message);
  };
  return (part, error) => {
    const of = ownerOfPart(part);
    log.error('nft rejects rules of NetworkPolicies, which therefore allow nothing', { ...of, error });
    if ('policy' in of) {
      const [namespace = '', name = ''] = of.policy.split('/');
      const message = `node ${nodeName} lets this NetworkPolicy allow nothing, because nft rejects its rules; change the NetworkPolicy`;
      warn(options.policy(namespace, name), `${message}: ${error.message.split('\n', 1)[0]}`);
    } else {
      const message = `node ${nodeName} lets the NetworkPolicies of the Pod allow nothing, because nft rejects the rules for ${of.address}`;
      warn(options.podAt(of.address), `${message}: ${error.message.split('\n', 1)[0]}`);
    }
  };
}

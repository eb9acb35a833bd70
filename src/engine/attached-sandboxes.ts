/** Connects the private runtime with the Pod network: no container is created before the rules for its sandbox are complete. */
import type { PodNetwork } from '../network/pod-network/pod-network.ts';
import { type PoliciesOptions, startPolicies } from '../network/policies/policies.ts';
import type { RunningProxy } from '../network/proxy/proxy.ts';
import { inTime } from '../platform/at-most.ts';
import type { ContainerRuntime, SandboxPods } from '../runtime/runtime.ts';

/** Writing the rules for thousands of objects takes seconds on a busy machine. */
const FIRST_RULES_MILLIS = 30_000;

export interface AttachmentOptions extends Omit<PoliciesOptions, 'table' | 'sandboxes' | 'left' | 'firstRulesMillis'> {
  services: Pick<RunningProxy, 'written'>;
}

/**
 * Enforces NetworkPolicies, also for sandboxes that an earlier engine has left. createContainer() of `runtime` waits until the rules for
 * Services are written and, except for Pods on the network of the host, until the NetworkPolicies apply to the addresses of the sandbox. If
 * that fails or takes longer than FIRST_RULES_MILLIS, createContainer() rejects: the container backs off, and an Event has the cause.
 */
export function requireAttachment(
  runtime: Pick<ContainerRuntime, 'createContainer'> & SandboxPods,
  network: Pick<PodNetwork, 'attached' | 'isAttached' | 'onDetached' | 'rules' | 'sandboxes'>,
  { services, ...options }: AttachmentOptions,
): void {
  const policies = startPolicies({
    ...options,
    table: network.rules,
    sandboxes: network,
    left: async () => {
      const pods = await runtime.sandboxPods(options.signal);
      return [...network.sandboxes()].flatMap(([id, addresses]) => {
        const pod = pods.get(id);
        // The runtime stores no ports of Pods, so named ports in NetworkPolicies allow no connections to a Pod that the API no longer has.
        return pod === undefined ? [] : [{ pod: { ...pod, ports: [] }, addresses }];
      });
    },
    firstRulesMillis: FIRST_RULES_MILLIS,
  });
  const { createContainer } = runtime;
  runtime.createContainer = async (sandboxId, sandbox, config, signal) => {
    const message = `the node has not written its rules for Services after ${FIRST_RULES_MILLIS / 1000} s; its log has the cause`;
    await inTime(services.written, FIRST_RULES_MILLIS, options.timers, message, signal);
    if (sandbox.hostNetwork !== true) {
      const addresses = await network.attached(sandboxId);
      const { pod, labels, allLabels = labels, namedPorts: ports = [] } = sandbox;
      await policies.hold({ ...pod, labels: allLabels, ports }, addresses, signal);
    }
    return createContainer(sandboxId, sandbox, config, signal);
  };
}

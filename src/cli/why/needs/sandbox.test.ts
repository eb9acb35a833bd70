import { type Case, explains, waiting } from '../explain-fixtures.ts';

const sandbox = (message: string, sentence: string, advice: RegExp, spec: Case['spec'] = {}): Case => ({
  spec,
  status: { containerStatuses: [waiting('app', 'ContainerCreating', '', { containerID: '' })] },
  steps: [[5, 'SandboxFailed', { message }]],
  sentence: `p ${sentence}.`,
  advice,
});

explains({
  'a Pod with hostUsers: false': sandbox(
    'RuntimeClass handler "" does not support user namespaces',
    'cannot start: its sandbox cannot be created, because it has hostUsers: false, and lifepod does not support user namespaces',
    /^recreate the Pod without hostUsers: false$/,
    { hostUsers: false },
  ),
  'a Pod whose host name is too long': sandbox(
    `failed to construct FQDN from pod hostname and cluster domain, FQDN ${'a'.repeat(60)}.b.n.svc is too long (64 characters is the max, 68 characters requested)`,
    `cannot start: its sandbox cannot be created, because its host name ${'a'.repeat(60)}.b.n.svc is longer than 64 characters`,
    /^give the Pod a shorter hostname or subdomain, or omit setHostnameAsFQDN, and recreate the Pod$/,
  ),
  'a Pod whose RuntimeClass has been deleted': sandbox(
    'runtimeclasses.node.k8s.io "gone" not found',
    'waits: its sandbox cannot be created, because its RuntimeClass gone does not exist',
    /^create the RuntimeClass, and the node retries automatically$/,
  ),
  'a Pod whose container runtime lacks the handler of the RuntimeClass': sandbox(
    'rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "foo" is configured',
    'waits: its sandbox cannot be created, because the container runtime does not have the handler foo of its RuntimeClass bar',
    /^start the engine with --runtime-handler foo=PATH .* or recreate the Pod with another runtimeClassName$/,
    { runtimeClassName: 'bar' },
  ),
  'a container with a recursive read-only mount that its runtime does not support': {
    status: {
      containerStatuses: [
        waiting(
          'app',
          'CreateContainerConfigError',
          'failed to resolve recursive read-only mode: volume "data" requested recursive read-only mode, but it is not supported by the runtime',
        ),
      ],
    },
    sentence:
      'p cannot start: container app mounts the volume data with recursiveReadOnly: Enabled, which the container runtime of its node does not support.',
    advice: /^set recursiveReadOnly to IfPossible or Disabled and recreate the Pod, or use a newer container runtime/,
  },
});

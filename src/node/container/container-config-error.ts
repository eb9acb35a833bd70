/**
 * The container or the Pod's sandbox cannot currently be configured as the spec requires. A retry may succeed. `reason`: the waiting reason
 * of the container.
 */
export class ContainerConfigError extends Error {
  override readonly name = 'ContainerConfigError';
  readonly reason = 'CreateContainerConfigError';
}

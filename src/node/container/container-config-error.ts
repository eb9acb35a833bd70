/** The container cannot currently be configured as its spec requires. A retry may succeed. `reason` is the container's waiting reason. */
export class ContainerConfigError extends Error {
  override readonly name = 'ContainerConfigError';
  readonly reason = 'CreateContainerConfigError';
}

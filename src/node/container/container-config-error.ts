/** The container cannot currently be configured as its spec requires. Status reason: CreateContainerConfigError. */
export class ContainerConfigError extends Error {
  override readonly name = 'ContainerConfigError';
  readonly reason = 'CreateContainerConfigError';
}

/** The container cannot be made of its spec as things are; status reason CreateContainerConfigError. */
export class ContainerConfigError extends Error {
  override readonly name = 'ContainerConfigError';
  readonly reason = 'CreateContainerConfigError';
}

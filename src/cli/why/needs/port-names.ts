/** Finds probes and hooks that name a port that their container does not have. They fail whenever they run. Pure. */
import { containersOf } from '../../../api/core/v1/pod/containers.ts';
import type { Container, Pod } from '../../../api/generated/types.ts';
import type { ProbeKind } from '../../../lifecycle/types.ts';
import { called, listed, type Shown } from '../subject.ts';

type Handler = ProbeKind | 'postStart' | 'preStop';

/**
 * Returns a clause such as `container app has no port named http (it has web)`; undefined if the container has the port, or if the handler
 * names none. Upstream's message is only that the name is not a number. `pod`: undefined if it is not known.
 */
export function missingPort(
  pod: Pod | undefined,
  shown: Pick<Shown, 'kind' | 'name' | 'isSidecar'>,
  handler: Handler,
): string | undefined {
  const container = pod && containersOf(pod).find(({ name }) => name === shown.name);
  const port = container && portOf(container, handler);
  const names = (container?.ports ?? []).flatMap(({ name }) => name ?? []);
  if (typeof port !== 'string' || names.includes(port)) return undefined;
  return `${called(shown)} has no port named ${port} (it has ${names.length === 0 ? 'no named ports' : listed(names)})`;
}

/** A tcpSocket hook is not run. */
function portOf(container: Pick<Container, 'lifecycle' | `${ProbeKind}Probe`>, handler: Handler) {
  const { lifecycle } = container;
  if (handler === 'postStart' || handler === 'preStop') return lifecycle?.[handler]?.httpGet?.port;
  const probe = container[`${handler}Probe`];
  return (probe?.httpGet ?? probe?.tcpSocket)?.port;
}

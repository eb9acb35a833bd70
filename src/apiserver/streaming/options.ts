/** Parses the options of a stream request. Source: v1.33 PodExecOptions, PodAttachOptions, PodPortForwardOptions. */
import type { Container, DeferContainer, EphemeralContainer, Pod } from '../../api/generated/types.ts';
import { badRequest } from '../../machinery/status.ts';
import type { StreamSelection } from '../../ports/node-connection.ts';
import { flag } from '../http/query.ts';

/** Throws 400 BadRequest if no stream is requested. Source of the message: v1.33 kubelet. */
function selection(query: URLSearchParams, tty: boolean): StreamSelection {
  const isRequested = (name: string): boolean => flag(query, name) ?? false;
  // A terminal has a single output, without a separate stderr.
  const streams = {
    stdin: isRequested('stdin'),
    stdout: isRequested('stdout'),
    stderr: isRequested('stderr') && !tty,
    tty,
  };
  if (streams.stdin || streams.stdout || streams.stderr) return streams;
  throw badRequest('you must specify at least 1 of stdin, stdout, stderr');
}

export function execOptions(query: URLSearchParams): StreamSelection & { command: readonly string[] } {
  const command = query.getAll('command');
  if (command.length === 0) throw badRequest('you must specify at least one command for the container');
  return { ...selection(query, flag(query, 'tty') ?? false), command };
}

/** The container's spec, not the request, determines whether there is a terminal. Throws 400 BadRequest if no stream is requested. */
export function attachOptions(query: URLSearchParams, pod: Pod, containerName: string): StreamSelection {
  const { containers = [], initContainers = [], deferContainers = [], ephemeralContainers = [] } = pod.spec ?? {};
  const all: (Container | DeferContainer | EphemeralContainer)[] = [
    ...containers,
    ...initContainers,
    ...deferContainers,
    ...ephemeralContainers,
  ];
  return selection(query, all.find(({ name }) => name === containerName)?.tty === true);
}

const MAX_PORT = 65_535;
/** The runtime forwards all ports of a request at the same time, each in its own thread. */
const MAX_PORTS = 1000;

/**
 * Returns the ports in the query, which usually only WebSocket clients with older subprotocols send. Throws 400 BadRequest if a port is not
 * valid or there are more than MAX_PORTS ports.
 */
export function portForwardPorts(query: URLSearchParams): number[] {
  const values = query
    .getAll('ports')
    .flatMap((value) => value.split(','))
    .filter((value) => value !== '');
  if (values.length > MAX_PORTS) throw badRequest(`at most ${MAX_PORTS} ports may be forwarded on a connection`);
  return values.map((value) => {
    const port = Number(value);
    if (/^\d+$/.test(value) && port >= 1 && port <= MAX_PORT) return port;
    throw badRequest(`unable to parse ${JSON.stringify(value)} as a port`);
  });
}

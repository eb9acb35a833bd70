/**
 * Parses the option --container-runtime-endpoint of `lifepod up`, and names the commands that help if the runtime does not answer.
 * Source: the kubelet's option of the same name of v1.33, which also accepts paths.
 */
import { realFolder, UserError } from '../../platform/files.ts';
import { type ServiceCommands, serviceCommands } from '../../platform/programs/service-commands.ts';

const SCHEME = 'unix://';

/** Converts an absolute path or an endpoint to the form unix:///PATH. Throws a UserError for any other text. The caller handles ''. */
export function runtimeEndpoint(text: string): string {
  // gRPC also accepts unix:/path, which an older lifepod may have recorded.
  const endpoint = text.replace(/^(unix:)?(?=\/(?!\/))/, SCHEME);
  if (endpoint.startsWith(`${SCHEME}/`)) return endpoint;
  throw new UserError(
    `--container-runtime-endpoint ${JSON.stringify(text)} is not a socket of a runtime: give its path, such as unix:///run/containerd/containerd.sock, or '' for a private containerd`,
  );
}

/** Returns undefined for the private containerd: '', or a record without an endpoint. */
export const endpointOf = (text = ''): string | undefined => (text === '' ? undefined : runtimeEndpoint(text));

/** Returns whether both lead to the same socket, such as in /run and in /var/run. */
export const isSameEndpoint = (one: string | undefined, other: string | undefined): boolean =>
  one === other || (one !== undefined && other !== undefined && socketOf(one) === socketOf(other));

const socketOf = (endpoint: string): string => realFolder(endpoint.slice(SCHEME.length));

/** Matches the sockets of the units of Debian's and upstream's packages, in an endpoint or in a message about a failed call. */
const SOCKET_OF_UNIT = /(?:^|[\s"'(]|unix:\/\/)(?:\/var)?\/run\/(containerd|crio)\/\1\.sock(?![\w/])/;

/** Returns undefined without systemd, and if the text names no such socket. */
export function runtimeCommands(text: string, commandsOf = serviceCommands): ServiceCommands | undefined {
  const [, unit] = SOCKET_OF_UNIT.exec(text) ?? [];
  return unit === undefined ? undefined : commandsOf(unit);
}

/** Returns what to do about a runtime that does not answer, such as `start it with 'systemctl start containerd' ('…' prints its log)`. */
export function startRuntimeHint(text: string, commandsOf = serviceCommands): string {
  const commands = runtimeCommands(text, commandsOf);
  return commands === undefined ? 'start it' : `start it with '${commands.start}' ('${commands.log}' prints its log)`;
}

/** The option --container-runtime-endpoint of `lifepod up`. Source: the kubelet's option of the same name of v1.33, which also accepts paths. */
import { UserError } from '../../platform/files.ts';

const SCHEME = 'unix://';

/** Returns the endpoint as unix:///…; a path becomes one. Throws a UserError if it is something else. */
export function runtimeEndpoint(text: string): string {
  const endpoint = text.startsWith('/') ? `${SCHEME}${text}` : text;
  if (endpoint.startsWith(`${SCHEME}/`)) return endpoint;
  throw new UserError(
    `--container-runtime-endpoint ${JSON.stringify(text)} is not a socket of a runtime: give its path, such as unix:///run/containerd/containerd.sock`,
  );
}

/**
 * Parses the option --container-runtime-endpoint of `lifepod up`. Source: the kubelet's option of the same name of v1.33, which also
 * accepts paths.
 */
import { UserError } from '../../platform/files.ts';

const SCHEME = 'unix://';

/** Converts an absolute path or an endpoint to the form unix:///PATH. Throws a UserError for any other text. */
export function runtimeEndpoint(text: string): string {
  // gRPC also accepts unix:/path, which an older lifepod may have recorded.
  const endpoint = text.replace(/^(unix:)?(?=\/(?!\/))/, SCHEME);
  if (endpoint.startsWith(`${SCHEME}/`)) return endpoint;
  throw new UserError(
    `--container-runtime-endpoint ${JSON.stringify(text)} is not a socket of a runtime: give its path, such as unix:///run/containerd/containerd.sock`,
  );
}

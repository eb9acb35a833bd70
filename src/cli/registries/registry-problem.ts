/** Finds in the message of a failed pull why the registry, which answered, did not serve the image. Pure. */

export interface RegistryProblem {
  /**
   * `tls`: the registry probably speaks TLS and was asked with plain HTTP. `plain`: the reverse. `certificate`: its certificate is not
   * trusted. `credentials`: it needs other credentials. `denied`: it needs other credentials, or the repository does not exist.
   */
  cause: 'tls' | 'plain' | 'certificate' | 'credentials' | 'denied' | 'forbidden' | 'limit' | 'error';
  /** A clause about the problem, which names the registry if the message does. Undefined if the message of the runtime is clear. */
  text?: string;
}

/** The messages of containerd 1.7 and 2.x about a status code. */
const ANSWER =
  /(?:pulling from host (\S+) failed with status code \[[^\]]*\]|unexpected status(?: code)?(?: from \w+ request)?(?: to)?(?: "?(https?):\/\/([^/"\s]+)[^\s"]*"?)?): ([45]\d\d [A-Za-z][\w' -]*)/;
/** A server that speaks TLS closes the connection of a plain request, or sends an alert. Source: messages of Go's package net/http. */
const CLOSED = /"http:\/\/([^/"]+)[^"]*": (?:EOF|.*connection reset by peer|.*malformed HTTP (?:response|status code))/;

const CAUSES: Readonly<Record<string, RegistryProblem['cause']>> = {
  400: 'tls',
  401: 'credentials',
  403: 'forbidden',
  407: 'forbidden',
  429: 'limit',
};
const WHY: Readonly<Record<string, string>> = {
  400: ': does it speak TLS, and was it asked with plain HTTP?',
  401: ': it needs valid credentials',
};

/** Returns undefined for other failures, such as an image that does not exist or a registry that cannot be reached. */
export function registryProblem(message = ''): RegistryProblem | undefined {
  const [, closing] = CLOSED.exec(message) ?? [];
  if (closing !== undefined)
    return {
      cause: 'tls',
      text: `its registry ${closing} closed the connection of a plain HTTP request: does it speak TLS?`,
    };
  if (message.includes('server gave HTTP response to HTTPS client')) return { cause: 'plain' };
  if (message.includes('x509: certificate signed by unknown authority')) return { cause: 'certificate' };
  if (
    /no basic auth credentials|failed to fetch anonymous token: .*: 403 |pull access denied|insufficient_scope/.test(
      message,
    )
  )
    return { cause: 'denied' };
  const [, host, scheme, other = host, answer = ''] = ANSWER.exec(message) ?? [];
  const code = answer.slice(0, 3);
  // containerd appends the body of the response.
  const [status = ''] = answer.split(' - ');
  if (CAUSES[code] === undefined && !code.startsWith('5')) return undefined;
  const isTls = code === '400' && scheme === 'https';
  const name = other === undefined ? '' : ` ${other}`;
  return {
    cause: isTls ? 'error' : (CAUSES[code] ?? 'error'),
    text: `its registry${name} answers ${status.trim()}${isTls ? '' : (WHY[code] ?? '')}`,
  };
}

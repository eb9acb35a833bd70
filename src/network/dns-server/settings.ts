/** The arguments of the DNS process, and the messages between the process and the process that started it. */

export interface DnsSettings {
  /** Identifies the code and the settings. A process with another identity is replaced. */
  identity: string;
  /** The addresses on which the server listens. */
  addresses: string[];
  /** The port on which the server listens; 0 means any free port. */
  port: number;
  /** The domain of cluster names in lower case, such as cluster.local. */
  domain: string;
  /** The path of a resolv.conf with the name servers for names outside the cluster. */
  resolvConf: string;
  /** The file in which systemd-resolved lists the servers behind its stub, if `resolvConf` may name the stub. */
  behindStubs?: string;
  /** The port of the name servers; 53 if absent. */
  serverPort?: number;
}

/** A process that gets this argument takes the place of its parent, and gets the sockets from it. */
export const TAKE_OVER = '--take-over';
const SOCKET = '--socket';

/**
 * Returns the arguments of a DNS process. `socket`: the path of its socket for the engine, which also identifies the process in the list of
 * processes.
 */
export const dnsArguments = (socket: string, settings: DnsSettings): string[] => [
  SOCKET,
  socket,
  JSON.stringify(settings),
];

/** Returns whether these are the arguments of a DNS process with the socket. */
export const isDnsProcess = (args: readonly string[], socket: string): boolean =>
  args.some(
    (arg, i) => arg === SOCKET && args[i + 1] === socket && /\/dns-server\/main\.[jt]s$/.test(args[i - 1] ?? ''),
  );

export function readArguments(args: readonly string[]): { socket: string; settings: DnsSettings; takesOver: boolean } {
  const [option, socket = '', settings = '', last] = args;
  if (option !== SOCKET) throw new Error('the DNS process is started by lifepod up');
  return { socket, settings: JSON.parse(settings) as DnsSettings, takesOver: last === TAKE_OVER };
}

/** The message of a process to the process that started it. */
export type ChildMessage =
  | { listening: true }
  | { failed: { code?: string; message: string } }
  /** The process has all records and now needs the sockets. */
  | { wantsSockets: true }
  /** The process answers queries from now on. */
  | { serving: true };

/** A message to the process that takes over. The first kind accompanies a socket; the second follows the last socket. */
export type SocketMessage = { address: string; kind: 'udp' | 'tcp'; port: number } | { isLast: true };

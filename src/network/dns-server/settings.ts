/**
 * The settings of the DNS process, and the messages that it exchanges with the process that started it (`ChildMessage` and
 * `SocketMessage`).
 */

export interface DnsSettings {
  /** Identifies the code and the settings. A process with another identity is replaced. */
  identity: string;
  addresses: string[];
  /** 0 means any free port. */
  port: number;
  /** In lower case, such as cluster.local. */
  domain: string;
  /** The path of a resolv.conf with the name servers for names outside the cluster. */
  resolvConf: string;
  /** The file in which systemd-resolved lists the servers behind its stub, if `resolvConf` may name the stub. */
  behindStubs?: string;
  /** The port of the name servers for names outside the cluster; 53 if absent. */
  serverPort?: number;
}

/** A process with this argument takes the place of its parent, and gets the sockets from it. */
export const TAKE_OVER = '--take-over';
const SOCKET = '--socket';

/** `socket`: the path of the socket for the engine. */
export const dnsArguments = (socket: string, settings: DnsSettings): string[] => [
  SOCKET,
  socket,
  JSON.stringify(settings),
];

export const isDnsProcess = (args: readonly string[], socket: string): boolean =>
  args.some(
    (arg, i) => arg === SOCKET && args[i + 1] === socket && /\/dns-server\/main\.[jt]s$/.test(args[i - 1] ?? ''),
  );

export function readArguments(args: readonly string[]): { socket: string; settings: DnsSettings; takesOver: boolean } {
  const [option, socket = '', settings = '', last] = args;
  if (option !== SOCKET) throw new Error('the DNS process is started by lifepod up');
  return { socket, settings: JSON.parse(settings) as DnsSettings, takesOver: last === TAKE_OVER };
}

export type ChildMessage =
  | { listening: true }
  | { failed: { code?: string; message: string } }
  /** The process has all records and now needs the sockets. */
  | { wantsSockets: true }
  | { serving: true };

/** A message to the process that takes over. The first kind accompanies a socket; the second follows the last socket. */
export type SocketMessage = { address: string; kind: 'udp' | 'tcp'; port: number } | { isLast: true };

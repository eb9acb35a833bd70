/** Checks that the machine meets the requirements of lifepod. Each UserError says what to do. */
import { createServer } from 'node:net';
import { loopbackDown } from '../apiserver/listeners.ts';
import type { IpFamily } from '../machinery/ip.ts';
import { controlGroupProblem } from '../platform/control-groups/available.ts';
import { UserError } from '../platform/files.ts';
import { findProgram, runCommand } from '../platform/processes.ts';
import { installAdvice, packageOf } from '../platform/programs/packages.ts';

/** The programs that lifepod always needs. PRIVATE_CONTAINERD has those that a private containerd needs in addition. */
const ALWAYS = ['nft', 'conntrack', 'ip', 'flock', 'nsenter', 'setpriv', 'mount', 'umount'];
const PRIVATE_CONTAINERD = ['catatonit', 'containerd', 'runc'];
const CNI_FOLDERS = ['/usr/lib/cni', '/opt/cni/bin'];

/** Returns undefined if the CNI plugins are not installed. `find` searches for a program in a PATH. */
export function findCniFolder(find = findProgram): string | undefined {
  return CNI_FOLDERS.find((folder) => find('ptp', folder)?.startsWith(`${folder}/`));
}

/** Returns the Debian packages of the missing programs. */
export function missingPackages(privateContainerd: boolean, find = findProgram): string[] {
  const wanted = [...ALWAYS, ...(privateContainerd ? PRIVATE_CONTAINERD : [])];
  const missing = new Set(
    wanted.filter((program) => find(program) === undefined).flatMap((name) => packageOf(name) ?? []),
  );
  if (privateContainerd && findCniFolder(find) === undefined) missing.add('containernetworking-plugins');
  return [...missing];
}

/** failureText() appends the command to type. */
export class NeedsRootError extends UserError {
  /** The rest of the sentence that begins with "only root can". */
  readonly what: string;
  /** The command to type. Undefined: the failed command, with sudo. */
  readonly command: string | undefined;
  /** Another way, such as `, or …`, which is appended after the command. */
  readonly otherwise: string;
  constructor(what = 'run this command', { command, otherwise = '' }: { command?: string; otherwise?: string } = {}) {
    super(`only root can ${what}: run it with sudo`);
    this.what = what;
    this.command = command;
    this.otherwise = otherwise;
  }
}

export function requireRoot(): void {
  if (process.geteuid?.() !== 0) throw new NeedsRootError();
}

/**
 * Throws a UserError if lifepod cannot run on this machine. `privateContainerd` returns whether lifepod will start a containerd of its own;
 * it is called after the check for root, because it reads the data folder.
 */
export function checkMachine(privateContainerd: () => boolean): void {
  if (process.platform !== 'linux') {
    throw new UserError(`lifepod runs on Linux, not on ${process.platform}: use a Linux machine`);
  }
  requireRoot();
  const isPrivate = privateContainerd();
  const missing = missingPackages(isPrivate);
  if (missing.length > 0) {
    const [noun, verb] = missing.length === 1 ? ['package', 'is'] : ['packages', 'are'];
    throw new UserError(`the ${noun} ${missing.join(', ')} ${verb} missing: ${installAdvice(missing)}`);
  }
  const problem = isPrivate ? controlGroupProblem() : undefined;
  if (problem !== undefined)
    throw new UserError(`${problem.what}, and runc runs no container without them: ${problem.advice}`);
}

export class PortInUseError extends UserError {
  /** The beginning of the message, without the advice. */
  readonly use: string;
  constructor(host: string, port: number) {
    const use = `port ${port} on ${host} is in use by another program`;
    super(`${use}: choose another with --port, or use --port 0 for a free one`);
    this.use = use;
  }
}

/**
 * Rejects with a PortInUseError if the port is in use, with another UserError if the machine does not have the address, and with the system
 * error if the port cannot be opened for another reason. Accepts port 0.
 */
export async function checkPortFree(host: string, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') {
        reject(new PortInUseError(host, port));
      } else if (error.code === 'EADDRNOTAVAIL') {
        const down = loopbackDown(host);
        reject(
          new UserError(
            down === undefined
              ? `this machine does not have the address ${host}: choose another with --bind-address`
              : `cannot listen on ${host}: ${down}`,
          ),
        );
      } else reject(error);
    });
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
  });
}

interface Route {
  prefsrc?: string;
}

/** Addresses that only a default route reaches, because they are reserved for documentation (RFC 5737 and RFC 3849). */
const REMOTE: Readonly<Record<IpFamily, string>> = { IPv4: '192.0.2.1', IPv6: '2001:db8::1' };

/**
 * Resolves with the source address of the machine's default route of the family, or with undefined if there is no such route, or only a
 * link-local source address.
 */
export async function nodeAddress(family: IpFamily, signal: AbortSignal): Promise<string | undefined> {
  // No packet is sent: the kernel only looks up the route.
  const { code, stdout } = await runCommand('ip', ['-json', 'route', 'get', REMOTE[family]], { signal });
  const address = code === 0 ? (JSON.parse(stdout) as Route[])[0]?.prefsrc : undefined;
  return address === undefined || /^fe[89ab]/.test(address) ? undefined : address;
}

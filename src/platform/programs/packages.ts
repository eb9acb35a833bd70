/** The Debian packages of the programs that lifepod runs. */
import { basename } from 'node:path';
import { asRoot } from './typed-program.ts';

const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  catatonit: ['catatonit'],
  conntrack: ['conntrack'],
  containerd: ['containerd', 'containerd-shim-runc-v2', 'ctr'],
  coreutils: ['nice', 'rm'],
  iproute2: ['ip', 'ss'],
  'kubernetes-client': ['kubectl'],
  mount: ['mount', 'umount'],
  nftables: ['nft'],
  runc: ['runc'],
  systemd: ['busctl', 'systemctl'],
  'util-linux': ['flock', 'nsenter', 'setpriv'],
  'busybox-static': ['busybox'],
};

/** Returns the Debian package with the program; undefined if PACKAGES lacks the program. */
export const packageOf = (program: string): string | undefined =>
  Object.keys(PACKAGES).find((name) => PACKAGES[name]?.includes(basename(program)));

/** Returns the command that installs the packages, as the rest of a sentence. */
export const installAdvice = (packages: readonly string[]): string =>
  `run '${asRoot(`apt-get install ${packages.join(' ')}`, process.env)}'`;

export function missingProgram(program: string): string {
  const name = packageOf(program);
  return `the command '${program}' is missing: ${name === undefined ? 'install it' : installAdvice([name])}`;
}

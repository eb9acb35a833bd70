/** Source: sd_booted(3). */
import { existsSync } from 'node:fs';
import { asRoot, needsSudo } from './typed-program.ts';

export interface ServiceCommands {
  start: string;
  /** Such as `sudo journalctl -u containerd`. Users other than root see only their own messages in the journal. */
  log: string;
}

/** Returns the commands for a unit such as `containerd`; undefined if systemd does not run this machine. */
export function serviceCommands(
  unit: string,
  env: NodeJS.ProcessEnv = process.env,
  sudo = needsSudo(env),
  isBooted = existsSync('/run/systemd/system'),
): ServiceCommands | undefined {
  if (!isBooted) return undefined;
  return { start: asRoot(`systemctl start ${unit}`, env, sudo), log: asRoot(`journalctl -u ${unit}`, env, sudo) };
}

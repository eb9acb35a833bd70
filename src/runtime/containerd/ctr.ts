import { requireProgram } from '../../platform/processes.ts';
import { CRI_NAMESPACE } from './paths.ts';

/** A command of containerd's own client: the program, and the options before its subcommand. */
export interface Ctr {
  program: string;
  args: readonly string[];
}

/** `endpoint`: in the form unix:///PATH. Throws a UserError if ctr is not installed. */
export const ctrFor = (endpoint: string): Ctr => ({
  program: requireProgram('ctr'),
  args: ['--address', endpoint.replace(/^unix:\/\//, ''), '--namespace', CRI_NAMESPACE],
});

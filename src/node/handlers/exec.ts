/** Commands in a container, as probes and hooks run them. */
import type { EnvVar } from '../../api/generated/types.ts';
import { type ContainerRuntime, type ExecResult, ExecTimeoutError } from '../../runtime/runtime.ts';
import { expandAll } from '../container/expand.ts';
import { HandlerFailure } from './failure.ts';

export type ExecPort = Pick<ContainerRuntime, 'execSync'>;

/** Most of a command's output that is told. Source: pkg/probe/exec of v1.33. */
export const MAX_OUTPUT = 10 * 1024;

/**
 * Resolves where the command ends with 0; rejects with a HandlerFailure that has its output where it does not, or is late.
 * The runtime's errors stay as they are.
 */
export async function execProbe(
  runtime: ExecPort,
  containerId: string,
  command: readonly string[],
  timeoutMillis: number,
  signal: AbortSignal,
): Promise<void> {
  const result = await runtime.execSync(containerId, command, timeoutMillis, signal).catch((error: unknown) => {
    throw error instanceof ExecTimeoutError ? new HandlerFailure(error.message) : error;
  });
  if (result.exitCode !== 0) throw new HandlerFailure(combined(result).slice(0, MAX_OUTPUT));
}

/** Upstream's order; CRI tells nothing of what came first. */
export const combined = ({ stdout, stderr }: ExecResult): string => stdout + stderr;

/**
 * The most that a probe's command may have, before and after its references are expanded. It is expanded for each probe, and what
 * comes of it is not kept: the memory of all that probes expand to would have no bound.
 */
const MAX_COMMAND_LENGTH = 256 * 1024;

const known = new WeakMap<readonly EnvVar[], ReadonlyMap<string, string>>();

/** Kept with the spec: a container may have 100,000 variables, and a probe each second. */
function valuesOf(env: readonly EnvVar[]): ReadonlyMap<string, string> {
  const values = known.get(env) ?? new Map(env.map(({ name, value }) => [name, value ?? '']));
  known.set(env, values);
  return values;
}

/**
 * A probe's command refers to the container's environment as its spec has it: what comes from elsewhere is empty.
 * Throws where it is too large. Source: ExpandContainerCommandOnlyStatic of v1.33.
 */
export function expandCommand(command: readonly string[], env: readonly EnvVar[]): string[] {
  const values = valuesOf(env);
  checkLength(command);
  const expanded = expandAll(command, (name) => values.get(name));
  checkLength(expanded);
  return expanded;
}

function checkLength(command: readonly string[]): void {
  const length = command.reduce((sum, word) => sum + word.length, 0);
  if (length > MAX_COMMAND_LENGTH) throw new Error('the command of the probe is larger than 256 KiB');
}

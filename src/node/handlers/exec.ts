import type { EnvVar } from '../../api/generated/types.ts';
import { type ContainerRuntime, type ExecResult, ExecTimeoutError } from '../../runtime/runtime.ts';
import { expandAll } from '../container/expand.ts';
import { HandlerFailure } from './failure.ts';

export type ExecPort = Pick<ContainerRuntime, 'execSync'>;

/** In characters. Source: pkg/probe/exec of v1.33. */
export const MAX_OUTPUT = 10 * 1024;

/**
 * Rejects with a HandlerFailure if the command times out or fails; if it fails, the message is the start of its output. Other errors of the
 * runtime are rethrown unchanged.
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

/** Returns stdout followed by stderr, as upstream does, because CRI does not report how they were interleaved. */
export const combined = ({ stdout, stderr }: ExecResult): string => stdout + stderr;

/**
 * In characters. Each run of a probe expands the command, so the limit of expandAll(), 6 MiB per command, would allow many probes to occupy
 * too much memory.
 */
const MAX_COMMAND_LENGTH = 256 * 1024;

const known = new WeakMap<readonly EnvVar[], ReadonlyMap<string, string>>();

/** Cached, since a container may have 100,000 variables and a probe every second. */
function valuesOf(env: readonly EnvVar[]): ReadonlyMap<string, string> {
  const values = known.get(env) ?? new Map(env.map(({ name, value }) => [name, value ?? '']));
  known.set(env, values);
  return values;
}

/**
 * A variable with valueFrom expands to the empty string. Throws if the command exceeds MAX_COMMAND_LENGTH. Source:
 * ExpandContainerCommandOnlyStatic of v1.33.
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

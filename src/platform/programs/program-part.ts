import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { internalError } from '../../machinery/status.ts';
import { asRoot, rootProgram, shellQuoted } from './typed-program.ts';

/** The folder of the clone or of the npm package. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');
const MISSING: readonly unknown[] = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ENOENT'];

/**
 * Resolves with the result of `load`. A running engine loads parts of its program only when it needs them, and the npm package may have
 * been removed or replaced by then: rejects with 500 InternalError and what to do if a file is missing. A failure is not cached, so that a
 * later call succeeds if the file is back.
 */
export async function programPart<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!MISSING.includes(code)) throw error;
    throw internalError(`${programLoss(process, process.env)} (in ${ROOT}: ${message})`);
  }
}

/** Returns the sentence that says how to restart the engine, which is the process with the PID and the arguments. */
export function programLoss(
  { pid, argv }: Pick<NodeJS.Process, 'pid' | 'argv'>,
  env: NodeJS.ProcessEnv,
  isPresent = existsSync(argv[1] ?? ''),
): string {
  const lost = isPresent ? 'replaced' : 'removed';
  return `the program of lifepod was ${lost} while the engine was running: ${isPresent ? '' : 'install lifepod again, then '}${restart(pid, argv, env)}`;
}

function restart(pid: number, argv: readonly string[], env: NodeJS.ProcessEnv): string {
  const effect = argv.includes('--shutdown-on-stop') ? 'ends its Pods' : 'leaves its Pods running';
  // Source: SYSTEMD_EXEC_PID in systemd.exec(5). The children of a service inherit the variable.
  if (env['SYSTEMD_EXEC_PID'] === String(pid))
    return `type '${asRoot('systemctl restart lifepod', env)}', which ${effect}`;
  if (pid === 1) return `restart its container, which ${effect}`;
  const dataDir = optionOf(argv, '--data-dir');
  const start = `${rootProgram(env)} up --detach${dataDir === undefined ? '' : ` --data-dir ${shellQuoted(resolve(dataDir))}`}`;
  return `type '${asRoot(`kill ${pid}`, env)}', which ${effect}, then '${start}'`;
}

function optionOf(argv: readonly string[], option: string): string | undefined {
  const at = argv.findLastIndex((word) => word === option || word.startsWith(`${option}=`));
  return argv[at] === option ? argv[at + 1] : argv[at]?.slice(option.length + 1);
}

/** Returns the sentence of programPart() in a message, such as the message of a failed probe; undefined if it contains none. */
export const programLossIn = (message: string): string | undefined =>
  /the program of lifepod was (?:replaced|removed) while the engine .*?(?= \(in \/)/.exec(message)?.[0];

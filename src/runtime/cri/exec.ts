import type { Timers } from '../../platform/platform.ts';
import { type ExecResult, ExecTimeoutError, MAX_EXEC_OUTPUT_BYTES } from '../runtime.ts';
import { CALL_TIMEOUT_MILLIS, type Connection, callErrorOf, hasCode } from './connection.ts';

interface ExecSyncResponse {
  stdout: Buffer;
  stderr: Buffer;
  exitCode: number;
}

export interface ExecCall {
  id: string;
  command: readonly string[];
  timeoutMillis: number;
}

/**
 * Runs the command for a probe or hook. After `timeoutMillis` (0: never), cancels the call, which makes the runtime kill the command, and
 * rejects with an ExecTimeoutError. CRI's own timeout is not sufficient: it is in whole seconds, and afterwards containerd waits for the
 * end of the output, which a remaining child process can delay. CRI's timeout is also set, so that the runtime can end the command without
 * the engine.
 */
export async function execSync(
  connection: Connection,
  timers: Timers,
  { id, command, timeoutMillis }: ExecCall,
  signal: AbortSignal,
): Promise<ExecResult> {
  signal.throwIfAborted();
  const ending = new AbortController();
  const abort = (): void => ending.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  const timer =
    timeoutMillis > 0
      ? timers.at(timers.now() + timeoutMillis, () => ending.abort(new ExecTimeoutError(command)))
      : undefined;
  try {
    const request = { containerId: id, cmd: command, timeout: Math.ceil(timeoutMillis / 1000) };
    const answer = await connection.unary<ExecSyncResponse>(
      'runtime.v1.RuntimeService/ExecSync',
      request,
      ending.signal,
      timeoutMillis > 0 ? timeoutMillis + CALL_TIMEOUT_MILLIS : 0,
    );
    return { exitCode: answer.exitCode, stdout: beginning(answer.stdout), stderr: beginning(answer.stderr) };
  } catch (error) {
    const timedOut = timeoutMillis > 0 && hasCode(error, 'DeadlineExceeded') && callErrorOf(error)?.answered === true;
    throw timedOut ? new ExecTimeoutError(command) : error;
  } finally {
    timer?.cancel();
    signal.removeEventListener('abort', abort);
  }
}

const beginning = (output: Buffer): string => output.toString('utf8', 0, MAX_EXEC_OUTPUT_BYTES);

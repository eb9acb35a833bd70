/** Waits for the first answer of the engine, so that an interrupted `lifepod down` can say that it has begun nothing. */
import type { HttpClient } from '../../client/http-client.ts';
import { isSilence } from '../../client/silence.ts';
import { UserError } from '../../platform/files.ts';
import { asRoot } from '../../platform/programs/typed-program.ts';
import { type Patience, sendPatiently } from '../delete-patiently.ts';
import { continueCommand, isEngineSuspended } from '../service/not-running.ts';

/** The command was interrupted before the engine has answered. */
export class UnansweredError extends UserError {}

/** Resolves when the engine answers a request that changes nothing, and when the signal aborts. */
export const untilAnswers = ({ open }: Pick<HttpClient, 'open'>, patience: Patience): Promise<void> =>
  sendPatiently(async () => void (await open('/version', patience.signal)).resume(), patience);

/** Returns the line about a request to the engine that has failed and is sent again. `again`: the command that ends the engine. */
export function retryText(dataDir: string, pid: number, error: Error, again: string): string {
  if (!isSilence(error)) return `the engine (PID ${pid}) does not answer yet: ${error.message}; retrying`;
  const otherwise = isEngineSuspended(dataDir, pid) ? '' : `; otherwise, press Ctrl+C, and ${endHung(pid, again)}`;
  return `${error.message}; waiting for it${otherwise}`;
}

export const unanswered = (dataDir: string, pid: number, again: string): UnansweredError =>
  new UnansweredError(
    `the engine (PID ${pid}) has not answered, so nothing has been ended: ` +
      (isEngineSuspended(dataDir, pid)
        ? `type '${continueCommand(pid)}', which continues the suspended process, then '${again}' again`
        : `type '${again}' again; if the engine hangs, first ${endHung(pid)}`),
  );

const endHung = (pid: number, again?: string): string =>
  `type '${asRoot(`kill -9 ${pid}`, process.env)}', which leaves its Pods running${again === undefined ? '' : `, then '${again}' again`}`;

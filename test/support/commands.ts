/**
 * Runs commands as children of a small process. A process that starts another one first copies its own page tables, which takes some ten
 * milliseconds in a worker with half a gigabyte of memory, and a test run starts some thousand commands.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import type { CommandResult } from '../../src/platform/processes.ts';
import type { CommandRequest, CommandResponse } from './command-process.ts';

const DEADLINE_MILLIS = 120_000;

const waiting = new Map<number, PromiseWithResolvers<CommandResult>>();
let starter: ChildProcess | undefined;
let lastId = 0;

/** Resolves when the command has ended, with any exit code. Rejects if it cannot start, or does not end within two minutes. */
export function runFromSmallProcess(
  command: string,
  args: string[],
  options: Pick<CommandRequest, 'env' | 'input'> = {},
): Promise<CommandResult> {
  starter ??= startProcess();
  const id = ++lastId;
  const ended = Promise.withResolvers<CommandResult>();
  waiting.set(id, ended);
  const request: CommandRequest = { id, command, args, timeoutMillis: DEADLINE_MILLIS, ...options };
  starter.send(request);
  return ended.promise;
}

function startProcess(): ChildProcess {
  const child = fork(join(import.meta.dirname, 'command-process.ts'), { execArgv: [], stdio: 'inherit' });
  child.on('message', (response: CommandResponse) => {
    const ended = waiting.get(response.id);
    waiting.delete(response.id);
    if ('result' in response) ended?.resolve(response.result);
    else ended?.reject(new Error(response.error));
  });
  child.once('exit', () => {
    starter = undefined;
    for (const { reject } of waiting.values()) reject(new Error('the process that runs commands has ended'));
    waiting.clear();
  });
  // The process must not keep the worker running.
  child.unref();
  child.channel?.unref();
  return child;
}

/** The program of the child process that commands.ts starts. It runs the commands that its parent sends, and ends with its parent. */
import { type CommandResult, runCommand } from '../../src/platform/processes.ts';

export interface CommandRequest {
  id: number;
  command: string;
  args: string[];
  env?: NodeJS.ProcessEnv;
  input?: string;
  timeoutMillis: number;
}

export type CommandResponse = { id: number } & ({ result: CommandResult } | { error: string });

const answer = (response: CommandResponse): void => void process.send?.(response);

process.on('message', ({ id, command, args, timeoutMillis, ...options }: CommandRequest) => {
  runCommand(command, args, { ...options, signal: AbortSignal.timeout(timeoutMillis) }).then(
    (result) => answer({ id, result }),
    (error) => answer({ id, error: `${command} ${args.join(' ')}: ${error}` }),
  );
});
process.on('disconnect', () => process.exit());

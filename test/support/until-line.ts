import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const DEADLINE_MILLIS = 120_000;

/**
 * Runs a program in its own process group until `done` returns true for a line of its output. Then kills the process group and resolves
 * with the lines so far. Rejects if the program ends before that.
 */
export async function untilLine(
  command: string,
  args: string[],
  env: NodeJS.ProcessEnv,
  done: (line: string, lines: readonly string[]) => boolean,
): Promise<string[]> {
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const killGroup = (): void => {
    // Other processes of the group may still run after the program has ended. If there are none, the group does not exist.
    if (child.pid !== undefined && processGroupExists(child.pid)) process.kill(-child.pid, 'SIGKILL');
  };
  const deadline = setTimeout(killGroup, DEADLINE_MILLIS);
  const closed = once(child, 'close');
  const lines: string[] = [];
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line);
      if (done(line, lines)) return lines;
    }
    throw new Error(`${command} ${args.join(' ')} ended before the expected line:\n${lines.join('\n')}\n${errors}`);
  } finally {
    clearTimeout(deadline);
    killGroup();
    await closed;
  }
}

function processGroupExists(id: number): boolean {
  try {
    return process.kill(-id, 0);
  } catch {
    return false;
  }
}

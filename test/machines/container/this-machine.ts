import { runCommand } from '../../../src/platform/processes.ts';
import type { Place } from './docker.ts';

export function thisMachine(): Place {
  const run: Place['run'] = (script, seconds = 300) =>
    runCommand('bash', ['-s'], { input: `${script}\n`, signal: AbortSignal.timeout(seconds * 1000) });
  return {
    run,
    async ok(script, seconds) {
      const { code, stdout, stderr } = await run(`set -eo pipefail\n${script}`, seconds);
      if (code !== 0) throw new Error(`exit code ${code} of\n${script}\n${stdout}${stderr}`);
      return stdout;
    },
  };
}

/**
 * Runs the commands in the README of an example in their order. Each code block of the language sh is a step. A code block of the language
 * text after it is the expected output. In the output, `…` matches any text within a line, and the widths of columns are ignored.
 *
 * Scratch folders replace the folder lifepod-NN of /tmp or /var/log, which README and manifests use on the node, and the data folder of the
 * program `lifepod`. `sudo` runs its command, because the tests run as root and do not need a sudo.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { expect } from 'vitest';
import { parseTime } from '../../src/machinery/time.ts';
import { runCommand } from '../../src/platform/processes.ts';
import { makeBusyboxArchive } from '../../src/runtime/images/local-images.ts';
import { LAUNCHER, type Lifepod, REPOSITORY, startLifepod } from './lifepod.ts';

const DEADLINE_MILLIS = 240_000;

export interface Example {
  lifepod: Lifepod;
  folder: string;
  /** The scratch folder that replaces /tmp/lifepod-NN and /var/log/lifepod-NN. */
  nodeFolder: string;
  /** Runs the next step, which must contain `what`. Compares its output with the README, and resolves with the output. */
  step(what: string): Promise<string>;
  rest(): string[];
  stop(): Promise<void>;
}

interface Step {
  commands: string;
  output?: string;
}

/** `name` is the example's folder, such as 02-cleanup-after-exit. */
export async function startExample(name: string): Promise<Example> {
  const lifepod = await startLifepod();
  const scratch = mkdtempSync(join(tmpdir(), 'lifepod-example-'));
  const nodeFolder = join(scratch, 'node');
  const folder = join(scratch, 'example');
  const stop = async (): Promise<void> => {
    try {
      await lifepod.stop();
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  };
  try {
    const archive = join(scratch, 'busybox.tar');
    await makeBusyboxArchive(archive, { reference: 'docker.io/library/busybox:1.36' });
    await lifepod.cliOk('image', 'load', archive);
    copyMoved(join(REPOSITORY, 'examples', name), folder, `lifepod-${name.slice(0, 2)}`, nodeFolder);
  } catch (error) {
    await stop();
    throw error;
  }
  const steps = readmeSteps(readFileSync(join(folder, 'README.md'), 'utf8'));
  const programs = join(scratch, 'programs');
  mkdirSync(programs);
  const script = `#!/bin/sh\ncommand=$1\nshift\nexec '${LAUNCHER}' "$command" --data-dir '${lifepod.dataDir}' "$@"\n`;
  writeFileSync(join(programs, 'lifepod'), script, { mode: 0o755 });
  writeFileSync(join(programs, 'sudo'), '#!/bin/sh\nexec "$@"\n', { mode: 0o755 });
  const env = {
    ...process.env,
    KUBECONFIG: lifepod.kubeconfig,
    HOME: lifepod.dataDir,
    PATH: [programs, dirname(LAUNCHER), process.env['PATH']].join(delimiter),
  };
  return {
    lifepod,
    folder,
    nodeFolder,
    stop,
    rest: () => steps.map(({ commands }) => commands),
    async step(what) {
      const next = steps.shift();
      expect(next?.commands ?? 'the README has no further step').toContain(what);
      const { commands, output } = next as Step;
      const signal = AbortSignal.timeout(DEADLINE_MILLIS);
      const result = await runCommand('sh', ['-ec', commands], { cwd: folder, env, signal });
      expect(result, commands).toMatchObject({ code: 0 });
      if (output !== undefined) expect(squeezed(result.stdout), commands).toMatch(pattern(output));
      return result.stdout;
    },
  };
}

function copyMoved(from: string, to: string, name: string, after: string): void {
  cpSync(from, to, { recursive: true });
  for (const file of readdirSync(to)) {
    const path = join(to, file);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(new RegExp(`/(?:tmp|var/log)/${name}`, 'g'), after));
  }
}

function readmeSteps(text: string): Step[] {
  const blocks = /^```sh\n([\s\S]*?)^```\n(?:\n```text\n([\s\S]*?)^```\n)?/gm;
  return [...text.matchAll(blocks)].map(([, commands = '', output]) =>
    output === undefined ? { commands } : { commands, output },
  );
}

const squeezed = (text: string): string => text.replaceAll(/ +/g, ' ').replaceAll(/ $/gm, '').trim();
const pattern = (output: string): RegExp =>
  new RegExp(
    `^${squeezed(output)
      .replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
      .replaceAll('…', '.*')}$`,
  );

export async function podAddress(lifepod: Lifepod, name: string): Promise<string> {
  return (await lifepod.kubectlOk('get', 'pod', name, '-o', 'jsonpath={.status.podIP}')).trim();
}

/** Returns NaN for undefined. */
export const millisOf = (text: string | undefined): number => parseTime(text ?? '') ?? Number.NaN;

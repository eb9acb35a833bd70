/**
 * An example run from the text of its README, in order: each block of sh is a step, and a block of text right behind it
 * is what the step prints. There `…` stands for anything within a line, and the widths of columns do not count.
 * The example's folder of the node, /tmp/lifepod-NN, is a scratch folder here, in README and manifests alike.
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { expect } from 'vitest';
import { runCommand } from '../../src/platform/processes.ts';
import { makeBusyboxArchive } from '../../src/runtime/images/local-images.ts';
import { LAUNCHER, type Lifepod, REPOSITORY, startLifepod } from './lifepod.ts';

const DEADLINE_MILLIS = 60_000;

export interface Example {
  lifepod: Lifepod;
  /** Its files, in a scratch folder. */
  folder: string;
  /** What stands for /tmp/lifepod-NN. */
  nodeFolder: string;
  /** Runs the next step, which must contain `what`; holds what it prints to the README, and returns it. */
  step(what: string): Promise<string>;
  /** The commands of the README that have not been run. */
  rest(): string[];
  stop(): Promise<void>;
}

interface Step {
  commands: string;
  output?: string;
}

/** `name`: the example's folder, such as 02-cleanup-after-exit. */
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
    copyMoved(join(REPOSITORY, 'examples', name), folder, `/tmp/lifepod-${name.slice(0, 2)}`, nodeFolder);
  } catch (error) {
    await stop();
    throw error;
  }
  const steps = readmeSteps(readFileSync(join(folder, 'README.md'), 'utf8'));
  const env = {
    ...process.env,
    KUBECONFIG: lifepod.kubeconfig,
    HOME: lifepod.dataDir,
    PATH: `${dirname(LAUNCHER)}${delimiter}${process.env['PATH']}`,
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

function copyMoved(from: string, to: string, before: string, after: string): void {
  cpSync(from, to, { recursive: true });
  for (const file of readdirSync(to)) {
    const path = join(to, file);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(before, after));
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

/** The address of a Pod. */
export async function podAddress(lifepod: Lifepod, name: string): Promise<string> {
  return (await lifepod.kubectlOk('get', 'pod', name, '-o', 'jsonpath={.status.podIP}')).trim();
}

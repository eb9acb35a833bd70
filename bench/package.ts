/**
 * Measures the sizes of the npm package, and the time from a command of the installed package to its end: `lifepod version`, and `lifepod
 * up --detach`, which ends when the node is Ready. The package uses the Node.js that runs the benchmark; nothing is downloaded.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dataDirOwner } from '../src/platform/files.ts';
import { runCommandOk } from '../src/platform/processes.ts';
import { bytesIn, installPackage } from '../test/support/installed-package.ts';
import { cpuMillis, median } from './engine.ts';

const REPOSITORY = join(import.meta.dirname, '..');
const ROUNDS = 5;
const NETWORK = ['--port', '0', '--pod-cidr', '10.213.0.0/16', '--service-cidr', '10.214.0.0/16'];

interface Cost {
  millis: number;
  /** The CPU time of the command, without the engine, which outlives the command. */
  commandMillis: number;
  engineMillis: number;
}

export async function packageSizeAndStart(): Promise<void> {
  await runCommandOk('bash', [join(REPOSITORY, 'scripts/build.sh')]);
  const folder = await mkdtemp(join(tmpdir(), 'lifepod-bench-'));
  const dataDir = join(folder, 'data');
  // HOME is the scratch folder, so that the first start finds no cache of compiled code.
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder };
  try {
    const { lifepod, root, packedBytes } = await installPackage(folder);
    const down = (): Promise<string> => runCommandOk(lifepod, ['down', '--data-dir', dataDir], { env });
    const run = async (...args: string[]): Promise<Cost> => {
      const cost = await commandCost(lifepod, args, env);
      const pid = args.includes('--detach') ? dataDirOwner(dataDir) : undefined;
      return { ...cost, engineMillis: pid === undefined ? 0 : await cpuMillis(pid) };
    };
    const up = async (isNew: boolean): Promise<Cost> => {
      if (isNew) await rm(dataDir, { recursive: true, force: true });
      const cost = await run('up', '--detach', '--data-dir', dataDir, ...NETWORK);
      await down();
      return cost;
    };
    console.log(`| what | size |\n|---|---|`);
    console.log(`| the package | ${mebibytes(packedBytes)} |`);
    console.log(`| unpacked | ${mebibytes(bytesIn(root) - bytesIn(join(root, 'node_modules')))} |`);
    console.log(`| installed, with the packages that it needs | ${mebibytes(bytesIn(root))} |`);
    console.log('\n| command | until it ends | CPU of the command | CPU of the engine |\n|---|---|---|---|');
    row('`up --detach`, the first of the installation', [await up(true)]);
    row('`up --detach`, a new data folder', await repeated(() => up(true)));
    row('`up --detach`, an existing data folder', await repeated(() => up(false)));
    row('`version`', await repeated(() => run('version')));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** bash measures the CPU time of the processes for which the command has waited. */
async function commandCost(
  command: string,
  args: string[],
  env: NodeJS.ProcessEnv,
): Promise<Omit<Cost, 'engineMillis'>> {
  // The engine in the background must not keep the output open.
  const script =
    'TIMEFORMAT="%3R %3U %3S"; { time "$0" "$@" >/dev/null 2>"$HOME/errors"; } 2>&1 || { cat "$HOME/errors" >&2; exit 1; }';
  const output = await runCommandOk('bash', ['-c', script, command, ...args], { env });
  const [millis = 0, user = 0, system = 0] = output.split(' ').map((seconds) => Number(seconds) * 1000);
  return { millis, commandMillis: user + system };
}

async function repeated(measure: () => Promise<Cost>): Promise<Cost[]> {
  const costs: Cost[] = [];
  for (let round = 0; round < ROUNDS; round++) costs.push(await measure());
  return costs;
}

function row(what: string, costs: Cost[]): void {
  const cell = (key: keyof Cost): string => `${median(costs.map((cost) => cost[key])).toFixed(0)} ms`;
  console.log(`| ${what} | ${cell('millis')} | ${cell('commandMillis')} | ${cell('engineMillis')} |`);
}

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

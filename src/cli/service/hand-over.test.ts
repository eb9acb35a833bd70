import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { dataDirOwner, lockPath } from '../../platform/files.ts';
import { handOver } from './hand-over.ts';
import { ENGINE_UNIT, UNITS } from './units.ts';

/** Starts a process that takes the lock of the data folder as an engine does. */
async function startEngine(dataDir: string): Promise<ChildProcess & { pid: number }> {
  const lock = `exec 3>>"$0"; flock 3; echo "$$ engine" >"$0"; exec sleep 600`;
  const engine = spawn('sh', ['-c', lock, lockPath(dataDir)], { stdio: 'ignore' });
  onTestFinished(() => void engine.kill('SIGKILL'));
  await expect.poll(() => dataDirOwner(dataDir), { timeout: 30_000 }).toBe(engine.pid);
  return engine as ChildProcess & { pid: number };
}

function setUp(mainPid: () => number) {
  const dataDir = mkdtempSync(join(tmpdir(), 'lifepod-hand-over-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const called: string[] = [];
  const systemctl = async (...args: string[]): Promise<string> => {
    if (args[0] === 'show') return `${mainPid()}\n`;
    const owner = dataDirOwner(dataDir) === undefined ? 'no engine' : 'an engine';
    called.push(`${args.filter((each) => !each.startsWith('--')).join(' ')} beside ${owner}`);
    return '';
  };
  return { dataDir, called, systemctl };
}

const END = [`enable ${UNITS.join(' ')}`, `start ${UNITS.join(' ')}`];

test('the service is stopped before an engine that systemd does not run, so that its restart does not take the data folder', async () => {
  const { dataDir, called, systemctl } = setUp(() => 0);
  const engine = await startEngine(dataDir);
  const exited = once(engine, 'exit');
  await handOver(dataDir, false, systemctl);
  await exited;
  expect(called).toEqual([
    'daemon-reload beside an engine',
    `stop ${ENGINE_UNIT} beside an engine`,
    ...END.map((each) => `${each} beside no engine`),
  ]);
});

test('an engine that systemd runs continues to run, or is restarted by systemd', async () => {
  let pid = 0;
  const { dataDir, called, systemctl } = setUp(() => pid);
  ({ pid } = await startEngine(dataDir));
  for (const mustRestart of [false, true]) {
    called.length = 0;
    await handOver(dataDir, mustRestart, systemctl);
    const steps = ['daemon-reload', ...(mustRestart ? [`restart ${ENGINE_UNIT}`] : []), ...END];
    expect(called).toEqual(steps.map((each) => `${each} beside an engine`));
  }
});

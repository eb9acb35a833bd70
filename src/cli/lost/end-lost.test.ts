import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { movedEngines } from '../../engine/data-folder/engine-processes.ts';
import { findLost, lostText, refuseLost } from '../../engine/data-folder/lost-folder.ts';
import { lockDataDir } from '../../platform/files.ts';
import { rootCommand } from '../../platform/programs/typed-program.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { backup } from '../backup/backup.ts';
import { discard } from '../secrets/discard.ts';
import { shutDownNode } from '../shutdown-node.ts';
import { readEngine } from '../status/read-engine.ts';
import { kubeconfigPaths } from '../target.ts';
import { endLost, endLostEngines, refuseMoved } from './end-lost.ts';

const { signal } = new AbortController();

async function lostEngine(end = 'rm -r "$3"', umask = '077'): Promise<{ pid: number; dataDir: string }> {
  const dataDir = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-lost-')));
  const script = `umask ${umask}; exec 3> "$3/lock"; ${end}; echo; read line`;
  const engine = spawn('/bin/sh', ['-c', script, '/cli/main.ts', 'up', '--data-dir', dataDir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void engine.kill('SIGKILL'));
  await once(engine.stdout, 'data');
  return { pid: engine.pid ?? 0, dataDir };
}

test.each([
  [
    'with a private container runtime ends its Pods',
    true,
    ', and its Pods without their grace periods',
    (dataDir: string) => `nothing from ${dataDir} is running or mounted any more`,
  ],
  [
    "without one names the containers that may run in the machine's own runtime",
    false,
    '',
    () =>
      "the engine has ended; if it used the machine's own container runtime, containers of its Pods may still run there: 'crictl pods' lists them",
  ],
])('lifepod down after the data folder of an engine %s was deleted', async (_, hasPods, pods, last) => {
  const { pid, dataDir } = await lostEngine();
  const said: string[] = [];
  const cleared: string[] = [];
  const clear = async (folder: string): Promise<void> => void cleared.push(folder);
  expect(await endLost(dataDir, (line) => said.push(line), signal, hasPods, clear)).toBe(true);
  expect(said).toEqual([
    `the data folder ${dataDir} was deleted while its engine ran: ending the engine (PID ${pid})${pods}`,
    last(dataDir),
  ]);
  expect(cleared).toEqual([dataDir]);
  expect(await endLost(dataDir, (line) => said.push(line), signal, hasPods, clear)).toBe(false);
});

test('a process that has a lock open that every user can read is not an engine', async () => {
  const { pid, dataDir } = await lostEngine('mv "$3" "$3.moved"', '022');
  onTestFinished(() => rmSync(`${dataDir}.moved`, { recursive: true }));
  expect(movedEngines(dataDir).filter((each) => each.pid === pid)).toEqual([]);
});

test('lifepod down ends an engine whose data folder was moved, and names it if the new path is given', async () => {
  const { pid, dataDir } = await lostEngine('mv "$3" "$3.moved"');
  const moved = `${dataDir}.moved`;
  onTestFinished(() => rmSync(moved, { recursive: true }));
  const said: string[] = [];
  const cleared: string[] = [];
  const clear = async (folder: string): Promise<void> => void cleared.push(folder);
  const down = `'${rootCommand('down', dataDir)}'`;
  expect(() => refuseMoved(moved, pid)).toThrow(
    `the data folder ${moved} was moved from ${dataDir} while its engine ran (PID ${pid}): move it back, or end the engine, and its Pods ` +
      `without their grace periods, with ${down}`,
  );
  refuseMoved(dataDir, pid);
  expect(findLost(dataDir)).toEqual({ pids: [pid], hasPods: false, movedTo: moved });
  expect(lostText(dataDir)).toBe(
    `the data folder ${dataDir} was moved to ${moved} while its engine ran: move it back, or ${down} ends the engine (PID ${pid})`,
  );
  expect(await endLost(dataDir, (line) => said.push(line), signal, true, clear)).toBe(true);
  expect(said).toEqual([
    `the data folder ${dataDir} was moved to ${moved} while its engine ran: ending the engine (PID ${pid}), and its Pods without their grace periods`,
    `nothing from ${dataDir} is running or mounted any more`,
  ]);
  expect(cleared).toEqual([dataDir, moved]);
  expect(await endLost(dataDir, (line) => said.push(line), signal, false, clear)).toBe(false);
  refuseMoved(moved, pid);
});

test('an engine that has its lock in its data folder, or that was given a link, is not one whose folder was moved', async () => {
  const { pid, dataDir } = await lostEngine('true');
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  expect(findLost(dataDir)).toBeUndefined();
  const link = `${dataDir}.link`;
  expect(movedEngines(link, [{ pid, dataDir: link, isLinked: true }])).toEqual([]);
  expect(movedEngines(link, [{ pid, dataDir: link }])).toEqual([{ pid, folder: dataDir }]);
});

const sentence = (dataDir: string, pid: number): string =>
  `the data folder ${dataDir} was deleted while its engine ran: '${rootCommand('down', dataDir)}' ends the engine (PID ${pid})`;

test('an engine whose data folder was deleted is ended although the folder is used again, and a start is refused before', async () => {
  const { pid, dataDir } = await lostEngine();
  mkdirSync(dataDir);
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const lock = lockDataDir(dataDir);
  const timers = createVirtualTimers();
  const refused = refuseLost(dataDir, timers);
  refused.catch(() => undefined);
  timers.advance(60_000);
  await expect(refused).rejects.toMatchObject({ name: 'UserError', message: sentence(dataDir, pid) });
  const said: string[] = [];
  expect(await endLostEngines(dataDir, (line) => said.push(line), signal)).toBe(true);
  expect(said).toEqual([
    `the data folder ${dataDir} was deleted while its engine ran: ending the engine (PID ${pid})`,
    expect.stringContaining("containers of its Pods may still run there: 'crictl pods' lists them"),
  ]);
  expect(await endLostEngines(dataDir, (line) => said.push(line), signal)).toBe(false);
  await refuseLost(dataDir, timers);
  lock.release();
});

test('commands say that the data folder was deleted while its engine ran, and create nothing', async () => {
  const { pid, dataDir } = await lostEngine();
  for (const command of [
    () => readEngine(dataDir, Date.now()),
    () => backup(join(tmpdir(), 'lifepod-none.tar.gz'), { dataDir }, signal),
    () => shutDownNode(dataDir),
    () => discard({ dataDir }),
    async () => kubeconfigPaths({ dataDir }, {}, () => false),
  ])
    await expect(command()).rejects.toMatchObject({ name: 'UserError', message: sentence(dataDir, pid) });
  expect(existsSync(dataDir)).toBe(false);
});

test('lifepod down ends nothing for a folder that no engine has used', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'lifepod-lost-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const clear = () => Promise.reject(new Error('nothing must be removed'));
  expect(await endLost(dataDir, () => undefined, signal, undefined, clear)).toBe(false);
});

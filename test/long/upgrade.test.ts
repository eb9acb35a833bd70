/**
 * Replaces the engine of an older commit with the current one while defer containers run. Needs the history of the repository.
 * test/e2e/own-engine/upgrade.test.ts starts an engine with archived data folders, without containers.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommandOk } from '../../src/platform/processes.ts';
import {
  ENTRIES,
  killedPod,
  logged,
  type MortalEngine,
  mortalEngine,
  open,
  removeEnded,
} from '../support/killed-pods.ts';
import { REPOSITORY, type Scratch, scratchFolder } from '../support/lifepod.ts';
import { lifepod, useOwnEngine } from '../support/own-engine.ts';
import { condition, isReady, runs, statusOf } from '../support/pods.ts';

/** The last commit before upgrades had tests. */
const OLDER = 'b110b681ce200d103dd98688d0ee1c1bf436db51';

const hasOlder = spawnSync('git', ['-C', REPOSITORY, 'cat-file', '-e', `${OLDER}^{commit}`]).status === 0;
if (!hasOlder) console.log(`the commit ${OLDER} is missing, as in a shallow clone: no older engine is replaced`);

/** Resolves with the path of a program that runs the older commit. */
async function olderLauncher(folder: string): Promise<string> {
  const sources = join(folder, 'sources');
  mkdirSync(sources);
  const archive = join(folder, 'sources.tar');
  await runCommandOk('git', ['-C', REPOSITORY, 'archive', '--output', archive, OLDER]);
  await runCommandOk('tar', ['-xf', archive, '-C', sources]);
  rmSync(archive);
  symlinkSync(join(REPOSITORY, 'node_modules'), join(sources, 'node_modules'));
  await runCommandOk(process.execPath, ['--no-wasm-tier-up', 'scripts/generate-api.ts'], { cwd: sources });
  const launcher = join(folder, 'older-lifepod');
  const text = `#!/bin/sh\nexec ${process.execPath} --no-wasm-tier-up ${join(sources, 'src/cli/main.ts')} "$@"\n`;
  writeFileSync(launcher, text, { mode: 0o700 });
  return launcher;
}

describe.runIf(hasOlder)('an upgrade', () => {
  let scratch: Scratch;
  let engine: MortalEngine;
  useOwnEngine(async () => {
    scratch = scratchFolder();
    return { launcher: await olderLauncher(scratch.path) };
  });
  beforeAll(async () => {
    engine = await mortalEngine(lifepod);
  });
  afterAll(async () => {
    engine?.end();
    await scratch?.remove();
  });

  const commandLine = (): string => readFileSync(`/proc/${lifepod.pid()}/cmdline`, 'utf8');

  test('a newer engine adopts the Pods of an older one, and continues their lists where they were', async () => {
    expect(commandLine()).toContain(scratch.path);
    const names = ['pre-exit', 'post-exit', 'running'];
    const items = names.map((name) => killedPod(lifepod, name));
    await lifepod.apply({ apiVersion: 'v1', kind: 'List', items });
    const [preExit, , running] = await Promise.all(names.map((name) => engine.record().until(name, isReady)));
    await lifepod.kubectlOk('delete', 'pod', 'pre-exit', 'post-exit', '--wait=false');
    for (const name of ['pre-exit', 'post-exit']) open(lifepod, name, 'hook', 'one');
    open(lifepod, 'post-exit', 'fail', 'two', 'app');
    await engine.record().until('pre-exit', runs('two'));
    await engine.killAt(engine.record().until('post-exit', runs('three')));
    expect(commandLine()).not.toContain(scratch.path);

    const [listed, adopted] = await Promise.all([
      engine.record().until('pre-exit', runs('two')),
      engine.record().until('running', isReady),
    ]);
    expect(statusOf(listed, 'app').containerID).toBe(statusOf(preExit ?? listed, 'app').containerID);
    expect(statusOf(adopted, 'app')).toMatchObject({
      containerID: statusOf(running ?? adopted, 'app').containerID,
      restartCount: 0,
    });
    for (const gate of ['fail', 'two', 'app', 'three', 'four']) {
      for (const name of ['pre-exit', 'post-exit']) open(lifepod, name, gate);
    }
    for (const name of ['pre-exit', 'post-exit']) {
      await removeEnded(lifepod, engine, name);
      const last = engine.seen(name).at(-1);
      expect(last && condition(last, 'Deferred')).toMatchObject({ reason: 'DeferContainersSucceeded' });
      const ends = logged(lifepod, name).filter((line) => line.startsWith('end '));
      expect(ends).toEqual(ENTRIES.map((entry) => `end ${entry}`));
    }
    for (const gate of ['hook', 'one', 'fail', 'two', 'app', 'three', 'four']) open(lifepod, 'running', gate);
    await lifepod.kubectlOk('delete', 'pod', 'running', '--wait=false');
    await removeEnded(lifepod, engine, 'running');
  });
});

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readEngineRecord } from '../../../src/engine/settings.ts';
import { sendSignal } from '../../../src/platform/processes.ts';
import { watchLeaks } from '../../support/leaks.ts';
import { freeNetwork, launch, type Scratch, scratchFolder, startLifepod } from '../../support/lifepod.ts';
import { type SessionCommand, startSession } from '../../support/session-command.ts';

let scratch: Scratch;
beforeEach(() => {
  scratch = scratchFolder();
});
afterEach(() => scratch.remove());

/** The engine cannot become ready with these valid options. */
const unusable = async (): Promise<string[]> => {
  const endpoint = `unix://${join(scratch.path, 'no-runtime.sock')}`;
  return [...(await freeNetwork()), '--node-name', 'wrong', '--container-runtime-endpoint', endpoint];
};

/** Begins a first start that waits for a ctr(8) that never ends. Resolves when ctr(8) has been started. */
async function blockedStart(dataDir: string, ...args: string[]): Promise<SessionCommand> {
  const bin = join(scratch.path, 'bin');
  mkdirSync(bin);
  const script = `#!/bin/sh\necho $$ > ${bin}/pid.new && mv ${bin}/pid.new ${bin}/pid && exec sleep 1000\n`;
  writeFileSync(join(bin, 'ctr'), script, { mode: 0o755 });
  const watching = new AbortController();
  const blocked = new Promise<void>((resolve) => {
    watch(bin, { signal: watching.signal }, (_, name) => name === 'pid' && resolve());
  });
  const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}` };
  const up = startSession(dataDir, 'up', [...(await freeNetwork()), ...args], '', env);
  await Promise.race([blocked, up.ended]);
  watching.abort();
  return up;
}

/** An engine that was killed has not ended the ctr(8) of blockedStart(). */
const unblock = (): void => sendSignal(Number(readFileSync(join(scratch.path, 'bin/pid'), 'utf8')), 'SIGKILL');

test('a first start that fails leaves nothing, and the folder can be used with other options', async () => {
  const options = await unusable();
  const missing = join(scratch.path, 'new/deep');
  expect(await launch(['up', '--data-dir', missing, ...options])).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /lifepod: the container runtime at unix:\S+ does not answer: .*; start it; \S*lifepod up --container-runtime-endpoint '' --data-dir \S+ uses a private containerd instead\n$/,
    ),
  });
  expect(existsSync(join(scratch.path, 'new'))).toBe(false);
  const detached = await launch(['up', '--detach', '--data-dir', scratch.path, ...options]);
  expect(detached.stderr).toMatch(
    /^lifepod: the container runtime at .* does not answer: .*; start it; \S*lifepod up --container-runtime-endpoint '' --data-dir \S+ uses a private containerd instead\n$/,
  );
  expect(readdirSync(scratch.path)).toEqual([]);
  const manifest = join(scratch.path, 'none.yaml');
  writeFileSync(manifest, 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: none }\n');
  for (const last of ['--detach', manifest]) {
    const refused = await launch(['up', '--data-dir', missing, ...options, last]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('does not answer') });
    expect(existsSync(join(scratch.path, 'new'))).toBe(false);
  }
  rmSync(manifest);
  expect(await (await watchLeaks(scratch.path)).left()).toEqual([]);
  const lifepod = await startLifepod({ scratch: { path: scratch.path, remove: async () => undefined } });
  expect(await lifepod.kubectlOk('get', 'nodes', '-o', 'name')).toBe('node/node-1\n');
  await lifepod.stop();
});

test('Ctrl+C during a first start is one line, and leaves nothing', async () => {
  const dataDir = join(scratch.path, 'data');
  mkdirSync(dataDir);
  const up = await blockedStart(dataDir, '--log-level', 'error');
  expect(readEngineRecord(dataDir)?.state).toBe('starting');
  up.signal('SIGINT');
  expect(await up.ended).toEqual({ code: 130, stdout: '', stderr: 'lifepod: stopped by SIGINT\n' });
  expect(readdirSync(dataDir)).toEqual([]);
  expect(await (await watchLeaks(dataDir)).left()).toEqual([]);
});

test.each(['down', 'up'])('lifepod %s after kill -9 of a first start removes what is left', async (command) => {
  const dataDir = join(scratch.path, 'data');
  mkdirSync(join(dataDir, 'manifests'), { recursive: true });
  const up = await blockedStart(dataDir);
  const { parts } = await watchLeaks(dataDir);
  expect(parts.join('\n')).toMatch(/^process .*containerd/m);
  up.signal('SIGKILL');
  unblock();
  await up.ended;
  expect(readEngineRecord(dataDir)?.state).toBe('starting');
  if (command === 'up') {
    const lifepod = await startLifepod({ scratch: { path: dataDir, remove: async () => undefined } });
    expect(await lifepod.kubectlOk('get', 'nodes', '-o', 'name')).toBe('node/node-1\n');
    expect(JSON.parse(readFileSync(join(dataDir, 'engine.json'), 'utf8'))).toMatchObject({ state: 'up' });
    return lifepod.stop();
  }
  const text = `nothing from ${dataDir} is running or mounted any more\n`;
  expect(await launch(['down', '--data-dir', dataDir])).toEqual({ code: 0, stdout: text, stderr: '' });
  expect(readdirSync(dataDir).sort()).toEqual(['lock', 'manifests']);
  expect(await (await watchLeaks(dataDir)).left()).toEqual([]);
});

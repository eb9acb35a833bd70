/** The files imitate those of the kernel. test/machines/container uses a real kernel. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { enableInContainer } from './cgroup-root.ts';

let root: string;
const procs = (): string => join(root, 'cgroup.procs');
const moved = (): string => join(root, 'init/cgroup.procs');
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-root-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  writeFileSync(procs(), '1\n7\n');
});

test('the processes of a container move to a group below its root group, and the controllers are enabled', async () => {
  writeFileSync(join(root, 'cgroup.type'), 'domain\n');
  let calls = 0;
  const enable = async (): Promise<boolean> => {
    calls++;
    return readFileSync(moved(), 'utf8') === '7';
  };
  expect(await enableInContainer(root, enable)).toBe(true);
  expect(calls).toBe(1);
});

test('processes that start while others move, as with docker exec, move as well', async () => {
  writeFileSync(join(root, 'cgroup.type'), 'domain\n');
  const seen: string[] = [];
  const enable = async (): Promise<boolean> => {
    seen.push(readFileSync(moved(), 'utf8'));
    writeFileSync(procs(), '9\n');
    return seen.length === 2;
  };
  expect(await enableInContainer(root, enable)).toBe(true);
  expect(seen).toEqual(['7', '9']);
});

test('the processes of a machine, whose root group is the real one, do not move', async () => {
  const enable = (): Promise<boolean> => Promise.reject(new Error('the kernel has already refused'));
  expect(await enableInContainer(root, enable)).toBe(false);
  expect(existsSync(join(root, 'init'))).toBe(false);
});

test.each([
  ['if the root group has only processes of other containers, because they cannot move', '0\n', 0],
  ['after ten tries', '1\n', 10],
])('the result is false %s', async (_, pids, tries) => {
  writeFileSync(join(root, 'cgroup.type'), 'domain\n');
  writeFileSync(procs(), pids);
  mkdirSync(join(root, 'init'));
  let calls = 0;
  const enable = async (): Promise<boolean> => {
    calls++;
    return false;
  };
  expect(await enableInContainer(root, enable)).toBe(false);
  expect(calls).toBe(tries);
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { processesNaming, residentBytes } from './leftovers.ts';

test.each([
  ['/scratch/d', true],
  ['/scratch/d/run/x.sock', true],
  ['--root=/scratch/d/x', true],
  ['/scratch/d2', false],
  ['/other/scratch', false],
])('processesNaming(/scratch/d) finds a process with the argument %s: %s', async (argument, expected) => {
  const child = spawn('sh', ['-c', 'echo; exec 1>&-; read line', argument], { stdio: ['pipe', 'pipe', 'ignore'] });
  try {
    await once(child.stdout, 'data');
    expect(processesNaming('/scratch/d').some(({ pid }) => pid === child.pid)).toBe(expected);
    expect(residentBytes(child.pid ?? 0)).toBeGreaterThan(0);
  } finally {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
  expect(residentBytes(child.pid ?? 0)).toBe(0);
});

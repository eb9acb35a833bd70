import { expect, test } from 'vitest';
import { findProgram, processAgeMillis, runCommand, runCommandOk } from './processes.ts';

test('runCommand captures stdout, stderr and the exit code', async () => {
  expect(await runCommand('sh', ['-c', 'echo out; echo err >&2; exit 3'])).toEqual({
    code: 3,
    stdout: 'out\n',
    stderr: 'err\n',
  });
});

test('runCommandOk passes arguments without interpretation by a shell', async () => {
  expect(await runCommandOk('echo', ['$(id)', '; true'])).toBe('$(id) ; true\n');
});

test('a program killed by a signal has the exit code 128 plus the signal, as in a shell', async () => {
  expect((await runCommand('sh', ['-c', 'kill -TERM $$'])).code).toBe(143);
  expect((await runCommand('sh', ['-c', 'kill -SEGV $$'])).code).toBe(139);
});

test('input is written to a program, and a program that does not read it causes no error', async () => {
  expect(await runCommandOk('cat', [], { input: 'text' })).toBe('text');
  expect((await runCommand('true', [], { input: 'x'.repeat(1_000_000) })).code).toBe(0);
});

test('the error of a failed program contains its stderr', async () => {
  await expect(runCommandOk('sh', ['-c', 'echo no such thing >&2; exit 4'])).rejects.toThrow(
    'sh -c ended with exit code 4: no such thing',
  );
});

test('aborting the signal kills the program', async () => {
  const abort = new AbortController();
  const running = runCommand('sleep', ['60'], { signal: abort.signal });
  abort.abort();
  await expect(running).rejects.toThrow(/abort/i);
});

test('running a missing program rejects', async () => {
  await expect(runCommand('/nonexistent/program', [])).rejects.toThrow(/ENOENT/);
});

test('the age of a process counts from its start', () => {
  const millis = process.uptime() * 1000;
  expect(Math.abs(processAgeMillis(process.pid) - millis)).toBeLessThan(1000);
  expect(processAgeMillis(1)).toBeGreaterThan(millis);
  expect(() => processAgeMillis(2 ** 30)).toThrow('ENOENT');
});

test('findProgram searches PATH and the system folders', () => {
  expect(findProgram('sh', '')).toMatch(/\/sh$/);
  expect(findProgram('no-such-program-here')).toBeUndefined();
});

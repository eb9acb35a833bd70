import { expect, test } from 'vitest';
import { findProgram, runCommand, runCommandOk } from './processes.ts';

test('captures both outputs and the exit code', async () => {
  expect(await runCommand('sh', ['-c', 'echo out; echo err >&2; exit 3'])).toEqual({
    code: 3,
    stdout: 'out\n',
    stderr: 'err\n',
  });
});

test('arguments are not read by a shell', async () => {
  expect(await runCommandOk('echo', ['$(id)', '; true'])).toBe('$(id) ; true\n');
});

test('a program ended by a signal has the exit code of a shell', async () => {
  expect((await runCommand('sh', ['-c', 'kill -TERM $$'])).code).toBe(143);
});

test('the input is written, also where the program does not read it', async () => {
  expect(await runCommandOk('cat', [], { input: 'text' })).toBe('text');
  expect((await runCommand('true', [], { input: 'x'.repeat(1_000_000) })).code).toBe(0);
});

test('a failure has the words of the program', async () => {
  await expect(runCommandOk('sh', ['-c', 'echo no such thing >&2; exit 4'])).rejects.toThrow(
    'sh -c ended with exit code 4: no such thing',
  );
});

test('an abort kills the program', async () => {
  const abort = new AbortController();
  const running = runCommand('sleep', ['60'], { signal: abort.signal });
  abort.abort();
  await expect(running).rejects.toThrow(/abort/i);
});

test('a program that is missing rejects', async () => {
  await expect(runCommand('/nonexistent/program', [])).rejects.toThrow(/ENOENT/);
});

test('programs are found in PATH and in the system folders', () => {
  expect(findProgram('sh', '')).toMatch(/\/sh$/);
  expect(findProgram('no-such-program-here')).toBeUndefined();
});

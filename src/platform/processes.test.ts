import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { UserError } from './files.ts';
import {
  findProgram,
  linesOf,
  nameProcess,
  processAgeMillis,
  requireProgram,
  runCommand,
  runCommandOk,
} from './processes.ts';

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

async function collect(lines: AsyncIterable<string[]>, into: string[] = []): Promise<string[]> {
  for await (const some of lines) into.push(...some);
  return into;
}

test('linesOf yields complete lines, wherever the output is divided, and the last one without its end', async () => {
  const numbers = Array.from({ length: 100_000 }, (_, index) => String(index + 1));
  expect(await collect(linesOf('seq', ['1', '100000']))).toEqual(numbers);
  expect(await collect(linesOf('printf', ['ä\\n\\nb']))).toEqual(['ä', '', 'b']);
  expect(await collect(linesOf('true', []))).toEqual([]);
});

test('linesOf lets a program with endless output wait, and ends it with the iteration', async () => {
  const sizes: number[] = [];
  for await (const lines of linesOf('yes', [])) {
    sizes.push(lines.length);
    // Without back pressure, the program would write megabytes during this command.
    if (sizes.length === 1) await runCommand('dd', ['if=/dev/zero', 'of=/dev/null', 'bs=1M', 'count=1000']);
    if (sizes.length === 20) break;
  }
  // A stream may join a few reads of 64 KiB.
  expect(Math.max(...sizes)).toBeLessThanOrEqual(200_000);
});

test('linesOf reports an exit code, a signal and a program that does not exist after the lines', async () => {
  const lines: string[] = [];
  const failing = linesOf('sh', ['-c', 'echo out; echo no such thing >&2; exit 4']);
  await expect(collect(failing, lines)).rejects.toThrow('sh -c ended with exit code 4: no such thing');
  expect(lines).toEqual(['out']);
  await expect(collect(linesOf('/no/such/program', []))).rejects.toThrow('ENOENT');
  const stop = new AbortController();
  const endless = linesOf('yes', [], { signal: stop.signal });
  await endless.next();
  stop.abort();
  await expect(collect(endless)).rejects.toThrow('aborted');
});

test('a program killed by a signal has the exit code 128 plus the signal, as in a shell', async () => {
  expect((await runCommand('sh', ['-c', 'kill -TERM $$'])).code).toBe(143);
  expect((await runCommand('sh', ['-c', 'kill -SEGV $$'])).code).toBe(139);
});

test('input is written to a program, and a program that does not read it causes no error', async () => {
  expect(await runCommandOk('cat', [], { input: 'text' })).toBe('text');
  expect(await runCommandOk('cat', [], { input: '' })).toBe('');
  expect((await runCommand('true', [], { input: 'x'.repeat(1_000_000) })).code).toBe(0);
});

test('pieces of input arrive in order, and a program that does not read them causes no error', async () => {
  const pieces = Array.from({ length: 100 }, (_, index) => `${index} ${'x'.repeat(10_000)}\n`);
  expect(await runCommandOk('cat', [], { input: pieces })).toBe(pieces.join(''));
  expect(await runCommandOk('cat', [], { input: [] })).toBe('');
  expect((await runCommand('true', [], { input: pieces })).code).toBe(0);
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

test('a program that is not installed is an error for the user', async () => {
  const missing = new UserError(`the command 'no-such-program' is missing: install it`);
  expect(() => requireProgram('no-such-program')).toThrow(missing);
  await expect(runCommand('no-such-program', [])).rejects.toEqual(missing);
  await expect(collect(linesOf('no-such-program', []))).rejects.toEqual(missing);
});

test('findProgram searches PATH and the system folders', () => {
  expect(findProgram('sh', '')).toMatch(/\/sh$/);
  expect(findProgram('no-such-program-here')).toBeUndefined();
});

test('nameProcess changes the name that ps(1) shows, and not the command line', () => {
  const [name, commandLine] = ['comm', 'cmdline'].map((file) => readFileSync(`/proc/self/${file}`, 'utf8'));
  onTestFinished(() => nameProcess(name?.trim() ?? ''));
  nameProcess('lifepod');
  expect(readFileSync('/proc/self/comm', 'utf8')).toBe('lifepod\n');
  expect(readFileSync('/proc/self/cmdline', 'utf8')).toBe(commandLine);
});

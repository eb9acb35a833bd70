import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { type CommandResult, runCommand } from '../../platform/processes.ts';

const folder = mkdtempSync(join(tmpdir(), 'lifepod-output-'));
afterAll(() => rmSync(folder, { recursive: true }));

function run(code: string, redirection: string, before = ':'): Promise<CommandResult> {
  const module = JSON.stringify(join(import.meta.dirname, 'standard-output.ts'));
  const program = `import { watchOutput } from ${module};\nwatchOutput();\n${code}`;
  const command = `${before}; "$0" --input-type=module --eval "$1" ${redirection}`;
  return runCommand('sh', ['-c', command, process.execPath, program]);
}

const WRITE = `process.stdout.write('text\\n');`;

test.each([
  ['one text', WRITE, 1],
  ['several texts', `${WRITE} setTimeout(() => { ${WRITE} });`, 1],
  ['a text before process.exit()', `${WRITE} process.exit(0);`, 1],
  ['a text before it exits with another code', `${WRITE} process.exit(2);`, 2],
  ['a text before it sets the exit code', `${WRITE} process.exitCode = 130;`, 130],
])('a program that prints %s to a full disk reports that once, and fails', async (_, code, exitCode) => {
  expect(await run(code, '>/dev/full')).toEqual({
    code: exitCode,
    stdout: '',
    stderr: 'lifepod: standard output cannot be written: no space left on device\n',
  });
});

test.each(['stdout', 'stderr'])('a program continues after an error of its %s', async (stream) => {
  const path = join(folder, stream);
  // The program writes until an error occurs, because the reader of the pipe may end later.
  const code = `
    import { writeFileSync } from 'node:fs';
    let next;
    const write = () => { next = setImmediate(write); process.${stream}.write('text\\n'); };
    process.${stream}.once('error', (error) => {
      clearImmediate(next);
      process.${stream}.write('text\\n');
      setImmediate(() => writeFileSync(${JSON.stringify(path)}, error.code));
    });
    write();
  `;
  const descriptor = stream === 'stdout' ? 1 : 2;
  const full = await run(code, `${descriptor}>/dev/full`);
  expect([readFileSync(path, 'utf8'), full.code]).toEqual(['ENOSPC', stream === 'stdout' ? 1 : 0]);
  const closed = await run(code, `${stream === 'stdout' ? '' : '2>&1 >/dev/null'} | true`);
  expect([readFileSync(path, 'utf8'), closed.stderr]).toEqual(['EPIPE', '']);
});

test('output of which only a part fits into the file is an error', async () => {
  const path = join(folder, 'file');
  const code = `process.stdout.write('x'.repeat(20_000));`;
  expect([await run(code, `>${path}`), statSync(path).size]).toEqual([{ code: 0, stdout: '', stderr: '' }, 20_000]);
  // The shell's limit for the size of a file has the effect of a disk that is almost full: a part is written, then an error follows.
  expect(await run(code, `>${path}`, 'ulimit -f 8')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'lifepod: standard output cannot be written: file too large\n',
  });
});

test('an I/O error of the disk that contains the file is reported', async () => {
  const code = `
    import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    fs.writeSync = () => {
      throw Object.assign(new Error('EIO'), { code: 'EIO', errno: -5 });
    };
    syncBuiltinESMExports();
    process.stdout.write('text\\n');
  `;
  expect(await run(code, `>${join(folder, 'failing')}`)).toEqual({
    code: 1,
    stdout: '',
    stderr: 'lifepod: standard output cannot be written: i/o error\n',
  });
});

test('the control characters of a line are visible, so that a message of a container does not change the terminal', async () => {
  const module = JSON.stringify(join(import.meta.dirname, 'standard-output.ts'));
  const code = `import { printError, printLine } from ${module}; printLine('a\\u001b[2J\\n\\tb'); printError('c\\u009b2J');`;
  expect(await runCommand(process.execPath, ['--input-type=module', '--eval', code])).toEqual({
    code: 0,
    stdout: 'a\\u001b[2J\n\tb\n',
    stderr: 'c\\u009b2J\n',
  });
});

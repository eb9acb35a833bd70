import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { UserError } from '../../platform/files.ts';
import { createTemporaryFolder, withTemporaryFolder } from './temporary-folder.ts';

test('a temporary folder is removed at the end, also after an error', async () => {
  const folder = await withTemporaryFolder('lifepod-test-', (path) => {
    writeFileSync(join(path, 'file'), '');
    return Promise.resolve(path);
  });
  expect(existsSync(folder)).toBe(false);
  let failed = '';
  await expect(
    withTemporaryFolder('lifepod-test-', (path) => {
      failed = path;
      return Promise.reject(new Error('no'));
    }),
  ).rejects.toThrow('no');
  expect(existsSync(failed)).toBe(false);
});

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('a temporary folder is removed when %s ends the command', async (signal, exitCode) => {
  const program = `
    import { withTemporaryFolder } from ${JSON.stringify(join(import.meta.dirname, 'temporary-folder.ts'))};
    await withTemporaryFolder('lifepod-test-', (folder) => {
      process.stdout.write(folder);
      return new Promise((resolve) => process.stdin.on('end', resolve).resume());
    });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const [output] = (await once(child.stdout, 'data')) as [Buffer];
  const folder = output.toString();
  try {
    expect(existsSync(folder)).toBe(true);
    child.kill(signal);
    expect(await exited).toEqual([exitCode, null]);
    expect(existsSync(folder)).toBe(false);
  } finally {
    child.stdin.destroy();
    rmSync(folder, { recursive: true, force: true });
  }
});

test.each([
  ['does not exist', '/nonexistent/tmp'],
  ['is not a folder', '/dev/null'],
])('an error about a TMPDIR that %s names the folder and TMPDIR', (problem, folder) => {
  vi.stubEnv('TMPDIR', folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(() => createTemporaryFolder('lifepod-test-')).toThrow(
    new UserError(`the folder for temporary files, ${folder}, ${problem}: set TMPDIR to an existing folder`),
  );
});

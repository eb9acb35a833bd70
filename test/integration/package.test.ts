/** Tests the build of the npm package. Also tests the setup of a worktree, whose node_modules is a link. */
import {
  chownSync,
  constants,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { runCommand, runCommandOk } from '../../src/platform/processes.ts';
import { bytesIn, installPackage } from '../support/installed-package.ts';
import { KUBECTL } from '../support/kubectl.ts';
import { freeNetwork, REPOSITORY, scratchFolder } from '../support/lifepod.ts';

beforeAll(async () => {
  await runCommandOk('bash', [join(REPOSITORY, 'scripts/build.sh')]);
});

test('the build has every file that the engine reads or runs, and its command line runs', async () => {
  const builtFiles = readdirSync(join(REPOSITORY, 'dist'), { recursive: true, encoding: 'utf8' });
  const read = readdirSync(join(REPOSITORY, 'src'), { recursive: true, encoding: 'utf8' }).filter((path) =>
    /\.proto$|^api\/generated\/.*\.json$|^cli\/completion\/completion\./.test(path),
  );
  expect(read.length).toBeGreaterThan(8);
  const run = ['cli/main.js', 'network/dns-server/main.js', 'apiserver/yaml/worker.js'];
  expect(builtFiles).toEqual(expect.arrayContaining([...read, ...run]));
  const main = join(REPOSITORY, 'dist/cli/main.js');
  const lifepod = (...args: string[]): Promise<string> => runCommandOk(process.execPath, [main, ...args]);
  expect(await lifepod('version')).toMatch(/^lifepod \d+\.\d+\.\d+ /);
  expect(await lifepod('completion', 'bash')).toContain('lifepod');
});

test('a command leaves the standard input that it shares with other programs in blocking mode, and reports lost output', async () => {
  const main = join(REPOSITORY, 'dist/cli/main.js');
  // Node.js restores the mode of standard input after the exit handlers, so an exit handler reads the mode.
  const code = `process.on('exit', () => process._rawDebug(process.getBuiltinModule('fs').readFileSync('/proc/self/fdinfo/0', 'utf8')))`;
  const words = [process.execPath, `--import=data:text/javascript,${encodeURIComponent(code)}`, main, 'version'];
  const { stdout, stderr } = await runCommand('sh', ['-c', ': | "$@"', 'sh', ...words]);
  expect(stdout).toMatch(/^lifepod /);
  const flags = Number.parseInt(/^flags:\s*(\d+)$/m.exec(stderr)?.[1] ?? '', 8);
  expect([flags, flags & constants.O_NONBLOCK]).toEqual([expect.any(Number), 0]);
  for (const command of ['version', 'up --help']) {
    const full = await runCommand('sh', ['-c', `"$0" "$1" ${command} >/dev/full`, process.execPath, main]);
    const stderr = 'lifepod: standard output cannot be written: no space left on device\n';
    expect([command, full]).toEqual([command, { code: 1, stdout: '', stderr }]);
  }
});

const MEBIBYTE = 2 ** 20;

/** Removes the program of the running engine and restores it. The engine has not loaded yet what the commands need. */
async function usePackageInPart(root: string, kubeconfig: string): Promise<void> {
  const [dist, elsewhere] = [join(root, 'dist'), join(root, 'elsewhere')];
  const env = { ...process.env, KUBECONFIG: kubeconfig, HOME: root };
  const commands = [
    ['create', 'secret', 'generic', 'db', '--from-literal=a=b'],
    ['explain', 'pods'],
  ];
  renameSync(dist, elsewhere);
  try {
    for (const command of commands)
      expect(await runCommand(KUBECTL, command, { env })).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(
          'the program of lifepod was removed while the engine was running: install lifepod again, then type ',
        ),
      });
  } finally {
    renameSync(elsewhere, dist);
  }
  for (const command of commands) await runCommandOk(KUBECTL, command, { env });
}

test('the installed package is small, has no file of the development, and starts an engine with the Node.js of its prefix', async () => {
  const prefix = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-package-')));
  onTestFinished(() => rmSync(prefix, { recursive: true }));
  const { lifepod, root, files, packedBytes } = await installPackage(prefix);
  const wanted = ['bin/lifepod', 'bin/kubectl-lifepod', 'dist/cli/main.js', 'LICENSE', 'README.md', 'ARCHITECTURE.md'];
  expect(files).toEqual(expect.arrayContaining(wanted));
  expect(files.filter((path) => /\.(ts|map|test\.js)$|^(src|test|bench|scripts|node_modules)\//.test(path))).toEqual(
    [],
  );
  expect(packedBytes).toBeLessThan(4 * MEBIBYTE);
  expect(bytesIn(root)).toBeLessThan(60 * MEBIBYTE);
  // This is the PATH of a service. It contains no Node.js, or only the machine's.
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: prefix };
  const run = (...args: string[]): Promise<string> => runCommandOk(lifepod, args, { env });
  expect(await run('version')).toContain(process.version);
  expect(await run('--help')).toContain('Usage: lifepod ');

  const scratch = scratchFolder();
  onTestFinished(() => scratch.remove());
  const dataDir = ['--data-dir', scratch.path];
  expect(await run('up', '--detach', ...dataDir, ...(await freeNetwork()))).toContain(`${scratch.path}/kubeconfig`);
  await usePackageInPart(root, `${scratch.path}/kubeconfig`);
  await run('down', ...dataDir);
});

test.each([
  ['is left as it is if the packages are those of package-lock.json', '', 0, ''],
  ['is not replaced if the packages are others', '\n', 1, 'node_modules is a link to '],
])('a linked node_modules %s', async (_, added, code, message) => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-setup-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const worktree = join(folder, 'worktree');
  mkdirSync(worktree);
  const packages = realpathSync(join(REPOSITORY, 'node_modules'));
  for (const name of ['scripts', 'src']) symlinkSync(join(REPOSITORY, name), join(worktree, name));
  symlinkSync(packages, join(worktree, 'node_modules'));
  // This file is newer than the installation.
  const lock = readFileSync(join(packages, '../package-lock.json'), 'utf8');
  writeFileSync(join(worktree, 'package-lock.json'), `${lock}${added}`);
  // An installation would run this npm.
  writeFileSync(join(folder, 'npm'), '#!/bin/sh\necho npm was run; exit 1\n', { mode: 0o755 });
  const PATH = `${folder}:${process.env['PATH']}`;
  const result = await runCommand('bash', [join(worktree, 'scripts/setup.sh')], { env: { ...process.env, PATH } });
  expect(result).toMatchObject({ code, stderr: expect.stringContaining(message) });
  expect(result.stdout).not.toContain('npm was run');
  expect(lstatSync(join(worktree, 'node_modules')).isSymbolicLink()).toBe(true);
});

test('the setup names the registry of npm that does not answer, without the name and the password in its address', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-setup-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const worktree = join(folder, 'worktree');
  mkdirSync(worktree);
  symlinkSync(join(REPOSITORY, 'scripts'), join(worktree, 'scripts'));
  const npm =
    "#!/bin/sh\n[ $1 = config ] && exec echo 'https://user:p@ssword@localhost/npm/'\necho 'npm error code ECONNREFUSED' >&2\nfalse\n";
  writeFileSync(join(folder, 'npm'), npm, { mode: 0o755 });
  const PATH = `${folder}:${process.env['PATH']}`;
  const result = await runCommand('bash', [join(worktree, 'scripts/setup.sh')], { env: { ...process.env, PATH } });
  expect(result).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(
      / from https:\/\/localhost\/npm\/, which .*\nsetup: https:\/\/localhost\/npm\/ does not answer: /,
    ),
    stderr: expect.stringMatching(/ reaches https:\/\/localhost\/npm\/\n$/),
  });
});

test('the setup by root in the checkout of another user leaves no files of root, and reports such files of an earlier one with the command that changes their owner', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-setup-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  symlinkSync(join(REPOSITORY, 'scripts'), join(folder, 'scripts'));
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'npm'), '#!/bin/sh\nmkdir -p node_modules/a && false\n', { mode: 0o755 });
  const JANE = 64_002;
  chownSync(folder, JANE, JANE);
  const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}` };
  const script = ['bash', join(folder, 'scripts/setup.sh')];
  await runCommand('env', script, { env });
  for (const path of ['node_modules', 'node_modules/a'])
    expect(statSync(join(folder, path))).toMatchObject({ uid: JANE, gid: JANE });
  mkdirSync(join(folder, 'dist'));
  const user = ['--reuid', String(JANE), '--regid', String(JANE), '--clear-groups'];
  expect(await runCommand('setpriv', [...user, ...script], { env })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^setup: \S+\/dist belongs to root, probably because a command with sudo created it: run 'sudo chown -R \S+: \S+', then run the setup again\n$/,
    ),
  });
});

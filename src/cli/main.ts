/**
 * The command line: what each command takes. A command's own module is loaded when it runs.
 * Failures that a user can answer (UserError) are one sentence; the exit code is then 1.
 */
import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { isApiError } from '../machinery/status.ts';
import { UserError } from '../platform/files.ts';
import {
  DEFAULT_DATA_DIR,
  DEFAULT_POD_CIDR,
  DEFAULT_PORT,
  DEFAULT_SERVICE_CIDR,
  LOG_LEVELS,
  type UpOptions,
} from './settings.ts';

function parsePort(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('give a number.');
  return Number(text);
}

/** One spelling of a folder, so that a lock, a name and a mount point mean the same one. */
function parseFolder(text: string): string {
  const path = resolve(text);
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

const dataDir = (): Option =>
  new Option('--data-dir <folder>', 'where everything is kept').default(DEFAULT_DATA_DIR).argParser(parseFolder);

const program = new Command('lifepod')
  .description('Runs Kubernetes Pods through their whole life on this machine, and serves the Kubernetes API.')
  .showHelpAfterError(false)
  .addHelpText('after', `\nSee also: 'lifepod help COMMAND'.`);

program
  .command('up')
  .description('start the control plane and the node; with SIGTERM they end, and the Pods go on')
  .addOption(dataDir())
  .option('--detach', 'return once everything is ready, and go on in the background')
  .option('--port <number>', `of the API on 127.0.0.1; 0: any free one (default: ${DEFAULT_PORT})`, parsePort)
  .option('--pod-cidr <network>', `addresses of Pods (default: ${DEFAULT_POD_CIDR})`)
  .option('--service-cidr <network>', `addresses of Services (default: ${DEFAULT_SERVICE_CIDR})`)
  .option('--node-name <name>', `(default: the machine's name)`)
  .option('--container-runtime-endpoint <url>', 'a CRI runtime to use, as unix:///…; without: a private containerd')
  .addOption(new Option('--log-level <level>', 'of the log on standard error').choices(LOG_LEVELS))
  .action(async (options: UpOptions & { detach?: boolean }) => {
    if (options.detach === true) return (await import('./detach.ts')).upDetached(options);
    return (await import('./up.ts')).up(options);
  });

program
  .command('down')
  .description('end every Pod gracefully, then the engine; nothing is left running or mounted')
  .addOption(dataDir())
  .action(async (options: { dataDir: string }) => (await import('./down.ts')).down(options.dataDir));

program
  .command('status')
  .description('what runs, versions, memory, what is unhealthy and why')
  .addOption(dataDir())
  .action(async (options: { dataDir: string }) => (await import('./status.ts')).status(options.dataDir));

program
  .command('image')
  .description('images of the private containerd')
  .command('load')
  .description('load OCI or Docker archives; no registry is needed')
  .argument('<file...>')
  .addOption(dataDir())
  .action(async (files: string[], options: { dataDir: string }) =>
    (await import('./image.ts')).loadImages(options.dataDir, files),
  );

program
  .command('demo')
  .description('run examples/01-init-containers in a scratch folder, show its life, leave nothing behind')
  .action(async () => (await import('./demo.ts')).demo());

program
  .command('version')
  .description('the versions of lifepod, of the API that it serves, and of Node.js')
  .action(async () => (await import('./version.ts')).printVersion());

try {
  await program.parseAsync();
} catch (error) {
  const expected = error instanceof UserError || isApiError(error);
  const text = expected ? (error as Error).message : (error as Error).stack;
  process.stderr.write(`lifepod: ${text}\n`);
  process.exitCode = 1;
}

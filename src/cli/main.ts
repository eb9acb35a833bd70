/**
 * The command line: what each command takes. A command's own module is loaded when it runs.
 * A failure that a user can answer is one sentence; the exit code is then 1.
 */
import { Command, InvalidArgumentError, Option } from 'commander';
import { DEFAULT_IMAGE_SETTINGS, IMAGE_FLAGS } from '../engine/image-settings.ts';
import { addNodeOptions } from '../engine/node-settings.ts';
import { DEFAULT_RECORD_AGE, DEFAULT_RECORD_SIZE } from '../engine/record-settings.ts';
import {
  addRuntimeHandler,
  DEFAULT_DATA_DIR,
  DEFAULT_POD_CIDR,
  DEFAULT_PORT,
  DEFAULT_SERVICE_CIDR,
  dataDirOption,
  isKubectlPlugin,
  LOG_LEVELS,
  type UpOptions,
} from '../engine/settings.ts';
import { DEFAULT_MAX_EXTENSION_SECONDS } from '../lifecycle/termination.ts';
import { realFolder } from '../platform/files.ts';
import { failureText } from './failures.ts';
import { plainFlags } from './logs/log-options.ts';
import type { LogsOptions } from './logs/logs.ts';
import type { TargetOptions } from './target.ts';
import type { TimelineOptions } from './timeline/timeline.ts';

function parsePort(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('give a number.');
  return Number(text);
}

const targetOptions = (): Option[] => [
  new Option('-n, --namespace <name>', `(default: the kubeconfig's)`),
  new Option('--data-dir <folder>', `of the engine to ask (default: ${DEFAULT_DATA_DIR})`).argParser(realFolder),
  new Option('--kubeconfig <file>', 'to use in place of that of the data folder'),
  new Option('--context <name>', 'of the kubeconfig'),
];

function withTarget(command: Command): Command {
  for (const option of targetOptions()) command.addOption(option);
  return command;
}

const program = new Command(isKubectlPlugin(process.env) ? 'kubectl lifepod' : 'lifepod')
  .description('Runs Kubernetes Pods through their whole life on this machine, and serves the Kubernetes API.')
  .showHelpAfterError(false)
  .addHelpText('after', `\nSee also: 'lifepod help COMMAND'.`);

const imageOptions = (): Option[] =>
  IMAGE_FLAGS.map(([flag, key, description]) => {
    const byDefault = DEFAULT_IMAGE_SETTINGS[key];
    const option = new Option(`${flag} <${typeof byDefault === 'number' ? 'number' : 'duration'}>`);
    option.description = `${description} (default: ${byDefault})`;
    return typeof byDefault === 'number' ? option.argParser(Number) : option;
  });

const up = program
  .command('up')
  .description('start the control plane and the node; with SIGTERM they end, and the Pods go on')
  .addOption(dataDirOption())
  .option('--detach', 'return once everything is ready, and go on in the background')
  .option('--port <number>', `of the API on 127.0.0.1; 0: any free one (default: ${DEFAULT_PORT})`, parsePort)
  .addOption(new Option('--any-port').hideHelp())
  .option('--pod-cidr <network>', `addresses of Pods (default: ${DEFAULT_POD_CIDR})`)
  .option('--service-cidr <network>', `addresses of Services (default: ${DEFAULT_SERVICE_CIDR})`)
  .option('--node-name <name>', `(default: the machine's name)`)
  .option('--container-runtime-endpoint <url>', 'a CRI runtime to use, as unix:///…; without: a private containerd')
  .option('--record-age <age>', `how long a Pod's record outlives it: 30m, 24h, 7d (default: ${DEFAULT_RECORD_AGE})`)
  .option('--record-size <size>', `of all records: 64Mi, 1Gi (default: ${DEFAULT_RECORD_SIZE})`)
  .option(
    '--max-grace-period-extension <seconds>',
    `that defer containers may have beyond their Pod's grace period (default: ${DEFAULT_MAX_EXTENSION_SECONDS})`,
    Number,
  )
  .option('--pod-pids-limit <number>', 'processes and threads that a Pod may have; -1: no limit (default: -1)', Number)
  .option(
    '--runtime-handler <name=runtime>',
    'for RuntimeClasses: the path of a program like runc, or the type of a shim',
    addRuntimeHandler,
  )
  .addOption(new Option('--log-level <level>', 'of the log on standard error').choices(LOG_LEVELS));
for (const option of imageOptions()) up.addOption(option);
addNodeOptions(up);
up.action(async (options: UpOptions & { detach?: boolean }) => {
  if (options.detach === true) return (await import('./detach.ts')).upDetached(options);
  return (await import('./up.ts')).up(options);
});

program
  .command('down')
  .description('end every Pod gracefully, then the engine; nothing is left running or mounted')
  .addOption(dataDirOption())
  .action(async (options: { dataDir: string }) => (await import('./down.ts')).down(options.dataDir));

program
  .command('shutdown-node')
  .description('for the shutdown of the machine: end the Pods, critical ones last, then the engine; their objects stay')
  .addOption(dataDirOption())
  .action(async (options: { dataDir: string }) => (await import('./shutdown-node.ts')).shutDownNode(options.dataDir));

program
  .command('status')
  .description('what runs, versions, memory, what is unhealthy and why')
  .addOption(dataDirOption())
  .action(async (options: { dataDir: string }) => (await import('./status/status.ts')).status(options.dataDir));

const image = program.command('image').description('images of the runtime; they need no registry');
image
  .command('load')
  .description('load OCI or Docker archives; Pods that wait for such an image start')
  .argument('<file...>')
  .addOption(dataDirOption())
  .action(async (files: string[], options: { dataDir: string }) =>
    (await import('./image.ts')).loadImages(options.dataDir, files),
  );
image
  .command('list')
  .alias('ls')
  .description('the images there are, their sizes, and how many Pods use them')
  .addOption(dataDirOption())
  .action(async (options: { dataDir: string }) => (await import('./image.ts')).printImages(options.dataDir));
image
  .command('rm')
  .description('remove images that no Pod uses, with all their names')
  .argument('<image...>', 'a name, an ID, or its beginning')
  .addOption(dataDirOption())
  .action(async (images: string[], options: { dataDir: string }) =>
    (await import('./image.ts')).removeImages(options.dataDir, images),
  );

withTarget(
  program
    .command('logs')
    .description('the log of a container, as kubectl logs; of defer containers and of all containers of a Pod as well')
    .argument('<pod>', 'its name, or pod/NAME')
    .argument('[container]')
    .option('-c, --container <name>', 'of any kind: init, app, defer, ephemeral')
    .option('--all-containers', 'every container of the Pod, from the first init container to the last defer container')
    .option('-f, --follow', 'go on while there is more; with --all-containers until the Pod has ended')
    .option('-p, --previous', 'of the run before the last restart')
    .option('--prefix', 'begin each line with [pod/NAME/CONTAINER]')
    .option('--no-prefix', 'with --all-containers: lines as they are')
    .option('--tail <lines>', 'only so many of the last lines')
    .option('--since <duration>', 'only what is newer than that: 5s, 2m, 3h')
    .option('--since-time <time>', 'only what is newer than that (RFC 3339)')
    .option('--timestamps', 'begin each line with its time')
    .option('--limit-bytes <bytes>', 'at most so much'),
).action(async (pod: string, container: string | undefined, options: LogsOptions) =>
  (await import('./logs/logs.ts')).logs(pod, container, options),
);

withTarget(
  program
    .command('describe')
    .description('what kubectl describe tells of a Pod, with its defer containers')
    .argument('<type>', 'pod, or pod/NAME')
    .argument('[name]'),
).action(async (type: string, name: string | undefined, options: TargetOptions) =>
  (await import('./describe/describe.ts')).describe(type, name, options),
);

withTarget(
  program
    .command('timeline')
    .description('the life of a Pod as bars over time, while it lives and after it is gone')
    .argument('<pod>', 'its name, or the beginning of its UID')
    .option('-w, --watch', 'go on while it lives')
    .option('-o, --output <form>', 'json: the record; wide: with the list of all steps')
    .option('--steps', 'with the list of all steps'),
).action(async (pod: string, options: TimelineOptions) =>
  (await import('./timeline/timeline.ts')).timeline(pod, options),
);

withTarget(
  program
    .command('why')
    .description('in one sentence why a Pod is as it is, with the evidence, and what to do')
    .argument('<pod>', 'its name, or the beginning of its UID'),
).action(async (pod: string, options: TargetOptions) => (await import('./why/why.ts')).why(pod, options));

withTarget(
  program
    .command('skip')
    .description(
      'give up a defer container of a Pod that ends: one that runs is stopped, one still to come does not run',
    )
    .argument('<pod>', 'its name, or pod/NAME')
    .argument('<entry>', 'the name of the defer container'),
).action(async (pod: string, entry: string, options: TargetOptions) =>
  (await import('./skip.ts')).skip(pod, entry, options),
);

program
  .command('demo')
  .description('run examples/01-init-containers in a scratch folder, show its life, leave nothing behind')
  .action(async () => (await import('./demo/demo.ts')).demo());

program
  .command('version')
  .description('the versions of lifepod, of the API that it serves, and of Node.js')
  .action(async () => (await import('../engine/version.ts')).printVersion());

// Who reads the output may have enough: a command that only prints comes to its end, and what acts goes on.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

try {
  await program.parseAsync(process.argv[2] === 'logs' ? plainFlags(process.argv) : process.argv);
} catch (error) {
  process.stderr.write(`lifepod: ${failureText(error)}\n`);
  process.exitCode = 1;
}

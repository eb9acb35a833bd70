/**
 * The command line: defines the arguments and options of each command. The module of a command is loaded only when the command runs.
 * An error that a command throws is printed to standard error, and the exit code is 1. If the user can fix the error, it is one sentence.
 */
import { Command, InvalidArgumentError, Option } from 'commander';
import { addAuditOptions } from '../engine/audit/audit-settings.ts';
import { addAuthenticationOptions } from '../engine/authentication/authentication-settings.ts';
import { DEFAULT_IMAGE_SETTINGS, IMAGE_FLAGS } from '../engine/image-settings.ts';
import { addNodeOptions } from '../engine/node-settings.ts';
import { API_FLAGS } from '../engine/options/api-settings.ts';
import { ENCRYPTION_DESCRIPTION, ENCRYPTION_FLAG } from '../engine/options/encryption-settings.ts';
import { DEFAULT_RECORD_AGE, DEFAULT_RECORD_SIZE } from '../engine/options/record-settings.ts';
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
import { DEFAULT_MAX_EXTENSION_SECONDS } from '../lifecycle/termination-causes.ts';
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
  new Option('-n, --namespace <name>', `namespace of the Pod (default: the kubeconfig's)`),
  new Option('--data-dir <folder>', `data folder of the engine to use (default: ${DEFAULT_DATA_DIR})`).argParser(
    realFolder,
  ),
  new Option('--kubeconfig <file>', 'kubeconfig to use instead of the one in the data folder'),
  new Option('--context <name>', 'context of the kubeconfig to use'),
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
  .description('start the control plane and the node; SIGTERM stops them and leaves the Pods running')
  .addOption(dataDirOption())
  .option('--detach', 'run in the background; return once everything is ready')
  .option('--port <number>', `port of the API on 127.0.0.1; 0 picks a free one (default: ${DEFAULT_PORT})`, parsePort)
  .addOption(new Option('--any-port').hideHelp())
  .option('--pod-cidr <network>', `address range of Pods, or IPv4,IPv6 ranges (default: ${DEFAULT_POD_CIDR})`)
  .option(
    '--service-cidr <network>',
    `address range of Services, or IPv4,IPv6 ranges (default: ${DEFAULT_SERVICE_CIDR})`,
  )
  .option('--node-name <name>', `name of the Node (default: the host name)`)
  .option('--container-runtime-endpoint <url>', 'CRI runtime to use, as unix:///… (default: a private containerd)')
  .option(
    '--record-age <age>',
    `how long to keep the record of a deleted Pod, such as 30m, 24h, 7d (default: ${DEFAULT_RECORD_AGE})`,
  )
  .option(
    '--record-size <size>',
    `maximum total size of all records, such as 64Mi, 1Gi (default: ${DEFAULT_RECORD_SIZE})`,
  )
  .option(
    '--max-grace-period-extension <seconds>',
    `longest extension of a Pod's grace period for its defer containers (default: ${DEFAULT_MAX_EXTENSION_SECONDS})`,
    Number,
  )
  .option(
    '--pod-pids-limit <number>',
    'maximum number of processes and threads of a Pod; -1 means no limit (default: -1)',
    Number,
  )
  .option(
    '--runtime-handler <name=runtime>',
    'handler for RuntimeClasses: the path of a program like runc, or a shim type; may be repeated',
    addRuntimeHandler,
  )
  .addOption(
    new Option('--log-level <level>', 'level of the log on standard error (default: info)').choices(LOG_LEVELS),
  );
// The flag of an option with an optional value means `true` if no value follows.
for (const [flag, , value, description] of API_FLAGS)
  up.addOption(new Option(`${flag} ${value}`, description).preset('true'));
for (const option of imageOptions()) up.addOption(option);
addNodeOptions(up);
addAuthenticationOptions(up);
addAuditOptions(up);
up.option(`${ENCRYPTION_FLAG} <file>`, ENCRYPTION_DESCRIPTION);
up.action(async (options: UpOptions & { detach?: boolean }) => {
  if (options.detach === true) return (await import('./detach.ts')).upDetached(options);
  return (await import('./up.ts')).up(options);
});

program
  .command('down')
  .description('delete every Pod gracefully, then stop the engine; leaves nothing running or mounted')
  .addOption(dataDirOption())
  .action(async (options: { dataDir: string }) => (await import('./down.ts')).down(options.dataDir));

program
  .command('shutdown-node')
  .description(
    'terminate the Pods for a shutdown of the machine, critical ones last, then stop the engine; keep the Pod objects',
  )
  .addOption(dataDirOption())
  .action(async (options: { dataDir: string }) => (await import('./shutdown-node.ts')).shutDownNode(options.dataDir));

program
  .command('status')
  .description('show what is running, versions, memory use, and what is unhealthy and why')
  .addOption(dataDirOption())
  .action(async (options: { dataDir: string }) => (await import('./status/status.ts')).status(options.dataDir));

const certs = program.command('certs').description('manage the certificates of the engine');
certs
  .command('check')
  .description('show when the certificates expire, and when the engine renews them')
  .addOption(dataDirOption())
  .action(async (options: { dataDir: string }) =>
    (await import('./status/certs.ts')).checkCertificates(options.dataDir),
  );

const secrets = program.command('secrets').description('manage the encryption of Secrets in the store');
secrets
  .command('rotate-key')
  .description('replace the key of the running engine, and encrypt all Secrets with the new one')
  .addOption(dataDirOption())
  .action(async (options: { dataDir: string }) => (await import('./secrets/rotate-key.ts')).rotateKey(options.dataDir));
secrets
  .command('discard')
  .description('list the objects of a stopped engine that cannot be decrypted, for example because their key is lost')
  .option('--yes', 'delete them')
  .addOption(dataDirOption())
  .action(async (options: { dataDir: string; yes?: boolean }) =>
    (await import('./secrets/discard.ts')).discard(options.dataDir, options.yes === true),
  );

const image = program.command('image').description('manage the images of the container runtime, without a registry');
image
  .command('load')
  .description('load images from OCI or Docker archives; Pods that wait for one of them start')
  .argument('<file...>')
  .addOption(dataDirOption())
  .action(async (files: string[], options: { dataDir: string }) =>
    (await import('./image.ts')).loadImages(options.dataDir, files),
  );
image
  .command('list')
  .alias('ls')
  .description('list images, their sizes, and how many Pods use them')
  .addOption(dataDirOption())
  .action(async (options: { dataDir: string }) => (await import('./image.ts')).printImages(options.dataDir));
image
  .command('rm')
  .description('remove images that no Pod uses, with all their names')
  .argument('<image...>', 'a name, an ID, or the beginning of an ID')
  .addOption(dataDirOption())
  .action(async (images: string[], options: { dataDir: string }) =>
    (await import('./image.ts')).removeImages(options.dataDir, images),
  );

withTarget(
  program
    .command('logs')
    .description('print the log of a container, like kubectl logs, including defer containers')
    .argument('<pod>', 'name of the Pod, or pod/NAME')
    .argument('[container]', 'same as --container')
    .option('-c, --container <name>', 'container of any kind: init, app, defer or ephemeral')
    .option('--all-containers', 'logs of all containers, from the first init container to the last defer container')
    .option('-f, --follow', 'keep printing new lines; with --all-containers, until the Pod has ended')
    .option('-p, --previous', 'log of the run before the last restart')
    .option('--prefix', 'start each line with [pod/NAME/CONTAINER]')
    .option('--no-prefix', 'with --all-containers: print lines without a prefix')
    .option('--tail <lines>', 'print at most this many of the last lines')
    .option('--since <duration>', 'only lines newer than a duration, such as 5s, 2m, 3h')
    .option('--since-time <time>', 'only lines newer than a time (RFC 3339)')
    .option('--timestamps', 'start each line with its time')
    .option('--limit-bytes <bytes>', 'print at most this many bytes'),
).action(async (pod: string, container: string | undefined, options: LogsOptions) =>
  (await import('./logs/logs.ts')).logs(pod, container, options),
);

withTarget(
  program
    .command('describe')
    .description('describe a Pod, like kubectl describe, including its defer containers')
    .argument('<type>', 'pod, or pod/NAME')
    .argument('[name]', 'name of the Pod'),
).action(async (type: string, name: string | undefined, options: TargetOptions) =>
  (await import('./describe/describe.ts')).describe(type, name, options),
);

withTarget(
  program
    .command('timeline')
    .description('draw the life of a Pod as bars over time, while the Pod exists and after it is gone')
    .argument('<pod>', 'name of the Pod, or the beginning of its UID')
    .option('-w, --watch', 'keep updating while the Pod exists')
    .option('-o, --output <format>', 'json prints the record; wide adds the list of all steps')
    .option('--steps', 'add the list of all steps'),
).action(async (pod: string, options: TimelineOptions) =>
  (await import('./timeline/timeline.ts')).timeline(pod, options),
);

withTarget(
  program
    .command('why')
    .description('explain the state of a Pod in one sentence, with the evidence and what to do')
    .argument('<pod>', 'name of the Pod, or the beginning of its UID'),
).action(async (pod: string, options: TargetOptions) => (await import('./why/why.ts')).why(pod, options));

withTarget(
  program
    .command('skip')
    .description('give up a defer container of a terminating Pod: a running one is stopped, a pending one does not run')
    .argument('<pod>', 'name of the Pod, or pod/NAME')
    .argument('<entry>', 'name of the defer container'),
).action(async (pod: string, entry: string, options: TargetOptions) =>
  (await import('./skip.ts')).skip(pod, entry, options),
);

program
  .command('demo')
  .description('run examples/01-init-containers in a scratch folder, show the life of its Pod, and clean up')
  .action(async () => (await import('./demo/demo.ts')).demo());

program
  .command('version')
  .description('print the versions of lifepod, of the Kubernetes API it serves, and of Node.js')
  .action(async () => (await import('../engine/version.ts')).printVersion());

// The program that reads the output may close the pipe early (EPIPE). A command with effects must finish nevertheless.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

try {
  await program.parseAsync(process.argv[2] === 'logs' ? plainFlags(process.argv) : process.argv);
} catch (error) {
  process.stderr.write(`lifepod: ${failureText(error)}\n`);
  process.exitCode = 1;
}

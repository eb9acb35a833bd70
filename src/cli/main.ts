/**
 * Defines the arguments and options of each command, and runs the typed command. The module of a command is loaded when the command runs,
 * so that other commands start fast. Importing this module runs no command.
 */
import { Argument, Command, Option } from 'commander';
import { OPTION_GROUPS } from '../engine/options/option-groups.ts';
import { dataDirOption } from '../engine/settings.ts';
import { versionText } from '../engine/version.ts';
import { UserError } from '../platform/files.ts';
import { completePath } from '../platform/programs/programs.ts';
import { addBackupCommands } from './backup/commands.ts';
import { COMPLETE, COMPLETION_HELP, SHELLS, type Shell, scriptFor } from './completion/scripts.ts';
import type { DownOptions } from './down-command.ts';
import { addEngineOptions } from './engine-options.ts';
import { errorLine, failureText } from './failures.ts';
import { parseGracePeriod } from './grace-period.ts';
import { refuseEmptyValues } from './help/empty-values.ts';
import { helpFor } from './help/help-command.ts';
import { layOutHelp } from './help/help-format.ts';
import { plainValues } from './help/short-options.ts';
import { explainUsageErrors } from './help/usage-errors.ts';
import { addKubeconfigCommand } from './kubeconfig/command.ts';
import { isKubectlPlugin } from './kubeconfig/kubectl.ts';
import { followKubectl } from './kubeconfig/plugin-folder.ts';
import { withTarget } from './kubeconfig/target-options.ts';
import { plainFlags } from './logs/log-options.ts';
import type { LogsOptions } from './logs/logs.ts';
import { addMakeCommand } from './make-image/command.ts';
import { printError, printLine, watchOutput } from './progress/standard-output.ts';
import { addSecretsCommands } from './secrets/commands.ts';
import type { RunOptions } from './session/run.ts';
import type { SessionOptions } from './session/session.ts';
import { exitCodeOf } from './signals.ts';
import type { StatusOptions } from './status/status.ts';
import type { TargetOptions } from './target.ts';
import type { TimelineOptions } from './timeline/timeline.ts';
import type { WhyOptions } from './why/why.ts';

completePath();

const collect = (text: string, others: string[] = []): string[] => [...others, text];

const jsonOption = (): Option =>
  new Option('-o, --output <format>', 'json prints all fields, for programs').choices(['json']);

export const program = new Command(isKubectlPlugin(process.env) ? 'kubectl lifepod' : 'lifepod')
  .description('Runs Kubernetes Pods through their whole life on this machine, and serves the Kubernetes API.')
  .version(versionText(), '-V, --version', `print the versions, like 'lifepod version'`)
  .addHelpText('after', `\nSee also: 'lifepod help COMMAND'.`);

const up = program
  .command('up')
  .usage('[options] [file...]')
  .description(
    'start the control plane and the node; SIGTERM stops them and leaves the Pods running. With files: run a session, which starts ' +
      'an engine if none is running, creates the objects in the files, prints the logs of their Pods, and deletes the objects when all ' +
      'Pods and Jobs have ended, or after Ctrl+C; the exit code is that of the first container that failed',
  )
  .argument('[file...]', 'manifests for a session: YAML or JSON files, folders, or - for standard input')
  .summary('start everything; with files, run a session that ends with its Pods')
  .option('--detach', 'run in the background; return once everything is ready')
  .option('--install-service', 'let systemd run the engine, now and after each start of the machine')
  .option('-n, --namespace <name>', 'namespace of objects in manifests that name none (default: default)')
  .addOption(dataDirOption().helpGroup(OPTION_GROUPS.engine));
addEngineOptions(up);
up.action(async (files: string[], options: SessionOptions & { detach?: boolean; installService?: boolean }) => {
  const { installService } = options;
  if (files.length > 0) {
    if (installService === true)
      throw new UserError(`--install-service is for an engine without a session: omit ${files.join(' ')}`);
    if (options.detach === true)
      throw new UserError(`--detach is for an engine without a session: omit ${files.join(' ')}, or the option`);
    return (await import('./session/session.ts')).upFiles(files, options);
  }
  if (options.namespace !== undefined) throw new UserError('--namespace is for manifests: name a file');
  if (installService === true) return (await import('./service/install-service.ts')).installService(options);
  if (options.detach === true) return (await import('./detached/up-detached.ts')).upDetached(options);
  return (await import('./up.ts')).up(options);
});

program
  .command('run')
  .usage('[options] <image> [-- command...]')
  .description(
    'run a command in a Pod, print its log, and delete the Pod when it has ended, or after Ctrl+C; starts an engine if none is ' +
      'running; the exit code is that of the command',
  )
  .summary('run a command in a Pod, print its log, and delete the Pod')
  .argument('<image>', 'name of the image, such as busybox:1.28')
  .argument('[command...]', 'command and its arguments, after --; without it, the image decides')
  .addOption(dataDirOption())
  .option('--name <name>', 'name of the Pod (default: derived from the image)')
  .option('-n, --namespace <name>', 'namespace of the Pod (default: default)')
  .option('-e, --env <name=value>', 'environment variable of the container; may be repeated', collect)
  .option('--rm', 'accepted for compatibility: the Pod is always deleted')
  .action(async (image: string, command: string[], options: RunOptions) =>
    (await import('./session/run.ts')).run(image, command, options),
  );

program
  .command('down')
  .description('delete every Pod gracefully, then stop the engine; leaves nothing running or mounted')
  .option('--uninstall-service', 'then remove the systemd units of up --install-service')
  .addOption(dataDirOption())
  .addOption(
    new Option('--now', 'end the Pods at once, like --grace-period 1; defer containers start, and are soon stopped'),
  )
  .addOption(
    new Option('--grace-period <seconds>', 'grace period of every Pod instead of its own; 0 means 1')
      .argParser(parseGracePeriod)
      .conflicts('now'),
  )
  .action(async (options: DownOptions) => (await import('./down-command.ts')).downCommand(options));

program
  .command('shutdown-node')
  .description(
    'terminate the Pods for a shutdown of the machine, critical ones last, then stop the engine; keep the Pod objects',
  )
  .addOption(dataDirOption())
  .action(async (options: { dataDir: string }) => (await import('./shutdown-node.ts')).shutDownNode(options.dataDir));

withTarget(
  program
    .command('status')
    .description(
      'show what is running, versions, memory use, and what is unhealthy and why; the exit code is 0 if everything is well, ' +
        '2 if something is not, and 1 if this cannot be found out',
    )
    .summary('show what is running, and what is unhealthy and why')
    .addOption(jsonOption()),
  'namespace of the Pods to show (default: all namespaces)',
).action(async (options: StatusOptions) => (await import('./status/status.ts')).status(options));

addKubeconfigCommand(program);

const certs = program.command('certs').description('manage the certificates of the engine');
certs
  .command('check')
  .description('show when the certificates expire, and when the engine renews them')
  .addOption(jsonOption())
  .addOption(dataDirOption())
  .action(async (options: { dataDir: string; output?: 'json' }) =>
    (await import('./status/certs.ts')).checkCertificates(options.dataDir, options.output),
  );

addSecretsCommands(program);

addBackupCommands(program);

const image = program.command('image').description('manage the images of the container runtime, without a registry');
image
  .command('load')
  .description(
    'load images from OCI or Docker archives, plain or compressed with gzip or zstd; Pods that wait for one of them start, except with imagePullPolicy Always',
  )
  .argument('<file...>', 'archives such as docker save writes; - is standard input')
  .addOption(dataDirOption())
  .action(async (files: string[], options: { dataDir: string }) =>
    (await import('./image.ts')).loadImages(options.dataDir, files),
  );
addMakeCommand(image);
image
  .command('list')
  .alias('ls')
  .description('list images, their sizes, and how many Pods use them')
  .addOption(jsonOption())
  .addOption(dataDirOption())
  .action(async (options: { dataDir: string; output?: 'json' }) =>
    (await import('./image.ts')).printImages(options.dataDir, options.output),
  );
image
  .command('rm')
  .alias('remove')
  .description('remove tags and images that no Pod uses; an image is removed with its last tag, or by its ID or digest')
  .argument('<image...>', 'a tag, a digest, an ID, or the beginning of an ID')
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
    .addOption(
      new Option('-o, --output <format>', 'json prints the record; wide adds the list of all steps').choices([
        'json',
        'wide',
      ]),
    )
    .option('--steps', 'add the list of all steps')
    .option('--list', 'list the lives of all Pods that have had this name; a UID in the list selects its last life'),
).action(async (pod: string, options: TimelineOptions) =>
  (await import('./timeline/timeline.ts')).timeline(pod, options),
);

withTarget(
  program
    .command('why')
    .description('explain the state of a Pod in one sentence, with the evidence and what to do')
    .argument('<pod>', 'name of the Pod, the beginning of its UID, or a workload such as job/NAME')
    .addOption(jsonOption()),
).action(async (pod: string, options: WhyOptions) => (await import('./why/why.ts')).why(pod, options));

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
  .addOption(jsonOption())
  .action(({ output }: { output?: 'json' }) => printLine(versionText(output)));

program
  .command('completion')
  .description('print a script that completes the commands, options and names of Pods in a shell')
  .addArgument(new Argument('<shell>').choices(SHELLS))
  .addHelpText('after', COMPLETION_HELP)
  .action((shell: Shell) => void process.stdout.write(scriptFor(shell)));

layOutHelp(program);
explainUsageErrors(program);
refuseEmptyValues(program);
followKubectl(program);

async function main(): Promise<void> {
  watchOutput();
  // commander must not parse the words to complete, because they may look like options of any command.
  if (process.argv[2] === COMPLETE)
    return (await import('./completion/complete.ts')).completeWords(program, process.argv.slice(3));
  try {
    const asked = helpFor(program, process.argv.slice(2));
    if (asked !== undefined) return asked.outputHelp();
    const args = plainValues(program, process.argv);
    await program.parseAsync(args[2] === 'logs' ? plainFlags(args) : args);
  } catch (error) {
    printError(errorLine(failureText(error)));
    process.exitCode = exitCodeOf(error);
  }
}

if (import.meta.main) await main();

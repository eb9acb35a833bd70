import { type Command, InvalidArgumentError, Option } from 'commander';
import { addAuditOptions } from '../engine/audit/audit-settings.ts';
import { addAuthenticationOptions } from '../engine/authentication/authentication-settings.ts';
import { DEFAULT_IMAGE_SETTINGS, IMAGE_FLAGS } from '../engine/image-settings.ts';
import { addNodeOptions } from '../engine/node-settings.ts';
import { API_FLAGS } from '../engine/options/api-settings.ts';
import { ENCRYPTION_DESCRIPTION, ENCRYPTION_FLAG } from '../engine/options/encryption-settings.ts';
import { OPTION_GROUPS } from '../engine/options/option-groups.ts';
import { DEFAULT_RECORD_AGE, DEFAULT_RECORD_SIZE } from '../engine/options/record-settings.ts';
import { addRuntimeHandler } from '../engine/options/runtime-handler.ts';
import { DEFAULT_POD_CIDR, DEFAULT_PORT, DEFAULT_SERVICE_CIDR, LOG_FORMATS, LOG_LEVELS } from '../engine/settings.ts';
import { DEFAULT_MAX_EXTENSION_SECONDS } from '../lifecycle/termination-causes.ts';

function parsePort(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('give a number from 1 to 65535, or 0 for a free one.');
  return Number(text);
}

function parseNumber(text: string): number {
  if (!/^-?\d+$/.test(text)) throw new InvalidArgumentError('give a whole number without a unit.');
  return Number(text);
}

const imageOptions = (): Option[] =>
  IMAGE_FLAGS.map(([flag, key, description]) => {
    const byDefault = DEFAULT_IMAGE_SETTINGS[key];
    const option = new Option(`${flag} <${typeof byDefault === 'number' ? 'number' : 'duration'}>`);
    option.description = `${description} (default: ${byDefault})`;
    return typeof byDefault === 'number' ? option.argParser(parseNumber) : option;
  });

export function addEngineOptions(command: Command): void {
  command.optionsGroup(OPTION_GROUPS.engine);
  addApiOptions(command);
  command.optionsGroup(OPTION_GROUPS.authentication);
  addAuthenticationOptions(command);
  command.optionsGroup(OPTION_GROUPS.audit);
  addAuditOptions(command);
  command.optionsGroup(OPTION_GROUPS.runtime);
  addRuntimeOptions(command);
  command.optionsGroup(OPTION_GROUPS.pods);
  addPodOptions(command);
  addNodeOptions(command);
  command
    .optionsGroup(OPTION_GROUPS.shutdown)
    .option('--shutdown-on-stop', "terminate the Pods on SIGTERM and SIGINT, as 'lifepod shutdown-node' does");
  // commander would add later options to the last group.
  command.optionsGroup('');
}

function addApiOptions(command: Command): void {
  command
    .option('--port <number>', `port of the API on 127.0.0.1; 0 picks a free one (default: ${DEFAULT_PORT})`, parsePort)
    .addOption(new Option('--any-port').hideHelp())
    .addOption(new Option('--for-sessions').hideHelp())
    .option('--node-name <name>', `name of the Node (default: the host name)`)
    .option('--pod-cidr <network>', `address range of Pods, or IPv4,IPv6 ranges (default: ${DEFAULT_POD_CIDR})`)
    .option(
      '--service-cidr <network>',
      `address range of Services, or IPv4,IPv6 ranges (default: ${DEFAULT_SERVICE_CIDR})`,
    );
  // commander passes the preset `true` if no value follows the flag.
  for (const [flag, , value, description] of API_FLAGS)
    command.addOption(new Option(`${flag} ${value}`, description).preset('true'));
  command
    .option(`${ENCRYPTION_FLAG} <file>`, ENCRYPTION_DESCRIPTION)
    .addOption(
      new Option('--log-level <level>', 'level of the log on standard error (default: info)').choices(LOG_LEVELS),
    )
    .addOption(
      new Option(
        '--log-format <format>',
        'format of the log: text for people or json (default: text, but json in lifepod.log, the log of an engine in the background)',
      ).choices(LOG_FORMATS),
    );
}

function addRuntimeOptions(command: Command): void {
  command
    .option(
      '--container-runtime-endpoint <url>',
      "socket of the CRI runtime to use, as unix:///… or a path; '' returns to the default (default: a private containerd)",
    )
    .option(
      '--runtime-handler <name=runtime>',
      'handler for RuntimeClasses: the path of a program like runc, or a shim type; may be repeated',
      addRuntimeHandler,
    );
  for (const option of imageOptions()) command.addOption(option);
}

function addPodOptions(command: Command): void {
  command
    .option(
      '--pod-pids-limit <number>',
      'maximum number of processes and threads of a Pod; -1 means no limit (default: -1)',
      parseNumber,
    )
    .option(
      '--max-grace-period-extension <seconds>',
      `longest extension of a Pod's grace period for its defer containers (default: ${DEFAULT_MAX_EXTENSION_SECONDS})`,
      parseNumber,
    )
    .option(
      '--record-age <age>',
      `how long to keep the record of a deleted Pod, such as 30m, 24h, 7d (default: ${DEFAULT_RECORD_AGE})`,
    )
    .option(
      '--record-size <size>',
      `maximum total size of all records, such as 64Mi, 1Gi (default: ${DEFAULT_RECORD_SIZE})`,
    );
}

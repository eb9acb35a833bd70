/**
 * Defines and checks the options of `lifepod up` for the audit log. They have the names of kube-apiserver's options.
 * Source: k8s.io/apiserver/pkg/server/options/audit.go of v1.33 (names, defaults and rules). Unlike upstream, a policy without a log, or a
 * log without a policy, is an error, because no event would be recorded.
 */
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { FORMATS, type Format } from '../../apiserver/audit/event.ts';
import { MODES, type Mode } from '../../apiserver/audit/sink.ts';
import { UserError } from '../../platform/files.ts';

/** An empty text means that the option is not set. */
export interface AuditOptions {
  auditPolicyFile?: string;
  auditLogPath?: string;
  auditLogMaxage?: string;
  auditLogMaxbackup?: string;
  auditLogMaxsize?: string;
  auditLogFormat?: string;
  auditLogMode?: string;
  auditLogTruncateEnabled?: string;
  auditLogTruncateMaxBatchSize?: string;
  auditLogTruncateMaxEventSize?: string;
}

export interface AuditSettings {
  policyFile: string;
  /** An absolute path, or `-` for standard output. */
  path: string;
  mode: Mode;
  format: Format;
  /** The size at which a file is rotated. */
  maxBytes: number;
  /** How many rotated files are kept; 0 means all. */
  maxBackups: number;
  /** For how many days rotated files are kept; 0 means without limit. */
  maxAgeDays: number;
  /** Undefined if events are not truncated. */
  maxEventBytes?: number;
}

interface TextOption {
  key: keyof AuditOptions;
  flag: string;
  value: string;
  description: string;
  default: string;
}

const MEBIBYTE = 1024 * 1024;
/** The size that --audit-log-maxsize=0 means. Source: the default of lumberjack, which writes upstream's audit log. */
const DEFAULT_MEBIBYTES = 100;

const TABLE: readonly TextOption[] = [
  {
    key: 'auditPolicyFile',
    flag: '--audit-policy-file',
    value: '<file>',
    description: 'audit.k8s.io/v1 Policy that says which requests are recorded; required with --audit-log-path',
    default: '',
  },
  {
    key: 'auditLogPath',
    flag: '--audit-log-path',
    value: '<file>',
    description: 'file for audit events, one per line; - means standard output',
    default: '',
  },
  {
    key: 'auditLogMaxage',
    flag: '--audit-log-maxage',
    value: '<days>',
    description: 'how long rotated audit logs are kept; 0 means without limit',
    default: '0',
  },
  {
    key: 'auditLogMaxbackup',
    flag: '--audit-log-maxbackup',
    value: '<number>',
    description: 'how many rotated audit logs are kept; 0 means all',
    default: '0',
  },
  {
    key: 'auditLogMaxsize',
    flag: '--audit-log-maxsize',
    value: '<megabytes>',
    description: `size of the audit log before it is rotated; 0 means ${DEFAULT_MEBIBYTES}`,
    default: '0',
  },
  {
    key: 'auditLogFormat',
    flag: '--audit-log-format',
    value: `<${FORMATS.join('|')}>`,
    description: 'format of audit events',
    default: 'json',
  },
  {
    key: 'auditLogMode',
    flag: '--audit-log-mode',
    value: `<${MODES.join('|')}>`,
    description: 'whether responses wait for their audit events, and requests are refused if these are lost',
    default: 'blocking',
  },
  {
    key: 'auditLogTruncateEnabled',
    flag: '--audit-log-truncate-enabled',
    value: '[true|false]',
    description: 'whether large audit events are recorded without their objects',
    default: 'false',
  },
  {
    key: 'auditLogTruncateMaxBatchSize',
    flag: '--audit-log-truncate-max-batch-size',
    value: '<bytes>',
    description: 'must not be smaller than --audit-log-truncate-max-event-size; has no other effect',
    default: String(10 * MEBIBYTE),
  },
  {
    key: 'auditLogTruncateMaxEventSize',
    flag: '--audit-log-truncate-max-event-size',
    value: '<bytes>',
    description: 'maximum size of an audit event, with --audit-log-truncate-enabled',
    default: String(100 * 1024),
  },
];

export function addAuditOptions(command: Command): Command {
  for (const { flag, value, description, default: usual } of TABLE) {
    const option = new Option(`${flag} ${value}`, usual === '' ? description : `${description} (default: ${usual})`);
    command.addOption(value.startsWith('[') ? option.preset('true') : option);
  }
  return command;
}

/** Returns each flag with its value; the value is undefined if the option was not given. */
export const auditFlags = (options: AuditOptions): [string, string | undefined][] =>
  TABLE.map(({ key, flag }) => [flag, options[key]]);

/**
 * Returns each value from `options`, else from `record`, else the default; relative paths become absolute. Throws a UserError if a value is
 * invalid.
 */
export function resolveAuditOptions(options: AuditOptions, record: AuditOptions = {}): Required<AuditOptions> {
  const resolved = Object.fromEntries(
    TABLE.map(({ key, default: usual }) => [key, options[key] ?? record[key] ?? usual]),
  ) as unknown as Required<AuditOptions>;
  for (const key of ['auditPolicyFile', 'auditLogPath'] as const)
    if (resolved[key] !== '' && resolved[key] !== '-') resolved[key] = resolve(resolved[key]);
  auditSettings(resolved);
  return resolved;
}

/** Returns undefined if the options select no audit log. Throws a UserError if a value is invalid. */
export function auditSettings(options: Required<AuditOptions>): AuditSettings | undefined {
  const { auditPolicyFile: policyFile, auditLogPath: path } = options;
  const mode = oneOf(MODES, options, 'auditLogMode');
  const format = oneOf(FORMATS, options, 'auditLogFormat');
  const [maxAgeDays, maxBackups, mebibytes] = (['auditLogMaxage', 'auditLogMaxbackup', 'auditLogMaxsize'] as const).map(
    (key) => amount(options, key, 0),
  ) as [number, number, number];
  const maxEventBytes = truncation(options);
  if ((policyFile === '') !== (path === '')) {
    throw new UserError('--audit-policy-file and --audit-log-path belong together: give both, or none of them');
  }
  if (policyFile === '') return undefined;
  const maxBytes = (mebibytes || DEFAULT_MEBIBYTES) * MEBIBYTE;
  return { policyFile, path, mode, format, maxBytes, maxBackups, maxAgeDays, maxEventBytes };
}

function truncation(options: Required<AuditOptions>): number | undefined {
  const maxEventBytes = amount(options, 'auditLogTruncateMaxEventSize', 1);
  if (amount(options, 'auditLogTruncateMaxBatchSize', 1) < maxEventBytes) {
    throw new UserError(
      '--audit-log-truncate-max-batch-size is smaller than --audit-log-truncate-max-event-size: give the same size or more',
    );
  }
  return oneOf(['true', 'false'], options, 'auditLogTruncateEnabled') === 'true' ? maxEventBytes : undefined;
}

const flagOf = (key: keyof AuditOptions): string => TABLE.find((each) => each.key === key)?.flag ?? '';

function oneOf<Value extends string>(
  values: readonly Value[],
  options: Required<AuditOptions>,
  key: keyof AuditOptions,
): Value {
  const found = values.find((value) => value === options[key]);
  if (found !== undefined) return found;
  const text = `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;
  throw new UserError(`${flagOf(key)} ${options[key]} is not valid: give ${text}`);
}

function amount(options: Required<AuditOptions>, key: keyof AuditOptions, least: number): number {
  const number = /^\d{1,9}$/.test(options[key]) ? Number(options[key]) : Number.NaN;
  if (number >= least) return number;
  throw new UserError(`${flagOf(key)} ${options[key]} is not valid: give a whole number, ${least} or more`);
}

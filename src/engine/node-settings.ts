/** Defines and checks the options of `lifepod up` for the node. */
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { DEFAULT_TERMINATED_PODS } from '../controllers/pod-gc/pod-gc.ts';
import { addAmounts, parseReserved, type Reserved } from '../node/admission/allocatable.ts';
import { parsePeriods, periodsOf, type ShutdownPeriod } from '../node/ending/shutdown-periods.ts';
import { DEFAULT_EVICTION, type EvictionConfig, parseEviction, parseSeconds } from '../node/eviction/thresholds.ts';
import { DEFAULT_MAX_PODS } from '../node/status/machine-facts.ts';
import { UserError } from '../platform/files.ts';
import { parseAllowedSysctls } from '../scheduling/sysctls.ts';
import { OPTION_GROUPS } from './options/option-groups.ts';

export interface NodeOptions {
  evictionHard?: string;
  evictionSoft?: string;
  evictionSoftGracePeriod?: string;
  evictionMinimumReclaim?: string;
  evictionMaxPodGracePeriod?: string;
  evictionPressureTransitionPeriod?: string;
  shutdownGracePeriod?: string;
  shutdownGracePeriodCriticalPods?: string;
  allowedUnsafeSysctls?: string;
  resolvConf?: string;
  shutdownGracePeriodByPodPriority?: string;
  kubeReserved?: string;
  systemReserved?: string;
  maxPods?: string;
  terminatedPodGcThreshold?: string;
  terminatingPhase?: string;
}

interface NodeOption {
  key: keyof NodeOptions;
  flag: string;
  value: string;
  description: string;
  default: string;
}

const BY_PRIORITY = '--shutdown-grace-period-by-pod-priority';

const TABLE: readonly NodeOption[] = [
  {
    key: 'evictionHard',
    flag: '--eviction-hard',
    value: '<signal<value,...>',
    description: 'evict Pods without a grace period when less is available',
    default: DEFAULT_EVICTION.hard,
  },
  {
    key: 'evictionSoft',
    flag: '--eviction-soft',
    value: '<signal<value,...>',
    description: 'evict Pods with a grace period when less has been available for a time',
    default: DEFAULT_EVICTION.soft,
  },
  {
    key: 'evictionSoftGracePeriod',
    flag: '--eviction-soft-grace-period',
    value: '<signal=time,...>',
    description: 'how long each soft threshold must be exceeded',
    default: DEFAULT_EVICTION.softGracePeriod,
  },
  {
    key: 'evictionMinimumReclaim',
    flag: '--eviction-minimum-reclaim',
    value: '<signal=value,...>',
    description: 'how much to reclaim beyond a threshold once it was exceeded',
    default: DEFAULT_EVICTION.minimumReclaim,
  },
  {
    key: 'evictionMaxPodGracePeriod',
    flag: '--eviction-max-pod-grace-period',
    value: '<seconds>',
    description: 'longest grace period of a Pod that is evicted for a soft threshold',
    default: DEFAULT_EVICTION.maxPodGracePeriod,
  },
  {
    key: 'evictionPressureTransitionPeriod',
    flag: '--eviction-pressure-transition-period',
    value: '<time>',
    description: 'how long the node reports a pressure condition after it is over',
    default: DEFAULT_EVICTION.pressureTransitionPeriod,
  },
  {
    key: 'shutdownGracePeriod',
    flag: '--shutdown-grace-period',
    value: '<time>',
    description: "total grace period of all Pods for 'lifepod shutdown-node'",
    default: '30s',
  },
  {
    key: 'shutdownGracePeriodCriticalPods',
    flag: '--shutdown-grace-period-critical-pods',
    value: '<time>',
    description: 'last part of the shutdown grace period, reserved for critical Pods',
    default: '10s',
  },
  {
    key: 'allowedUnsafeSysctls',
    flag: '--allowed-unsafe-sysctls',
    value: '<sysctl,...>',
    description: 'sysctls that Pods may set in addition to the safe ones; a trailing * matches any suffix',
    default: '',
  },
  {
    key: 'resolvConf',
    flag: '--resolv-conf',
    value: '<file>',
    description: "resolver configuration for Pods (default: the machine's)",
    default: '',
  },
  {
    key: 'shutdownGracePeriodByPodPriority',
    flag: BY_PRIORITY,
    value: '<priority=seconds,...>',
    description: 'grace periods by minimum Pod priority, lowest first; replaces the two other shutdown options',
    default: '',
  },
  {
    key: 'kubeReserved',
    flag: '--kube-reserved',
    value: '<resource=amount,...>',
    description: 'cpu, memory, ephemeral-storage and pid reserved for lifepod and containerd',
    default: '',
  },
  {
    key: 'systemReserved',
    flag: '--system-reserved',
    value: '<resource=amount,...>',
    description: 'cpu, memory, ephemeral-storage and pid reserved for the rest of the machine',
    default: '',
  },
  {
    key: 'maxPods',
    flag: '--max-pods',
    value: '<number>',
    description: 'maximum number of Pods on the node',
    default: String(DEFAULT_MAX_PODS),
  },
  {
    key: 'terminatedPodGcThreshold',
    flag: '--terminated-pod-gc-threshold',
    value: '<number>',
    description: 'maximum number of terminated Pods, beyond which the oldest are deleted; 0 means no limit',
    default: String(DEFAULT_TERMINATED_PODS),
  },
  {
    key: 'terminatingPhase',
    flag: '--terminating-phase',
    value: '<true|false>',
    description:
      'whether a Pod has the phase Terminating while its defer containers run; with false it keeps its phase',
    default: 'true',
  },
];

export function addNodeOptions(command: Command): Command {
  for (const { flag, value, description, default: usual } of TABLE) {
    const option = new Option(`${flag} ${value}`, usual === '' ? description : `${description} (default: ${usual})`);
    command.addOption(option.helpGroup(groupOf(flag)));
  }
  return command;
}

function groupOf(flag: string): string {
  if (flag.startsWith('--eviction-')) return OPTION_GROUPS.eviction;
  if (flag.startsWith('--shutdown-')) return OPTION_GROUPS.shutdown;
  return flag === '--resolv-conf' ? OPTION_GROUPS.engine : OPTION_GROUPS.pods;
}

/** Returns each flag with its value; the value is undefined if the option was not given. */
export const nodeOptionFlags = (options: NodeOptions): [string, string | undefined][] =>
  TABLE.map(({ key, flag }) => [flag, options[key]]);

/**
 * Returns each value from `options`, else from `record`, else the default; a relative path of --resolv-conf becomes absolute. Throws a
 * UserError if a value is invalid.
 */
export function resolveNodeOptions(options: NodeOptions, record: NodeOptions | undefined): Required<NodeOptions> {
  const resolved = Object.fromEntries(
    TABLE.map(({ key, default: usual }) => [key, options[key] ?? record?.[key] ?? usual]),
  ) as unknown as Required<NodeOptions>;
  if (resolved.resolvConf !== '') resolved.resolvConf = resolve(resolved.resolvConf);
  evictionConfig(resolved);
  shutdownPeriods(resolved);
  allowedSysctls(resolved);
  reservedResources(resolved);
  maxPods(resolved);
  terminatedPods(resolved);
  hasTerminatingPhase(resolved);
  return resolved;
}

export function evictionConfig(options: Required<NodeOptions>): EvictionConfig {
  return understood(() =>
    parseEviction({
      hard: options.evictionHard,
      soft: options.evictionSoft,
      softGracePeriod: options.evictionSoftGracePeriod,
      minimumReclaim: options.evictionMinimumReclaim,
      pressureTransitionPeriod: options.evictionPressureTransitionPeriod,
      maxPodGracePeriod: options.evictionMaxPodGracePeriod,
    }),
  );
}

export function shutdownPeriods(options: Required<NodeOptions>): ShutdownPeriod[] {
  const byPriority = options.shutdownGracePeriodByPodPriority;
  if (byPriority !== '') return understood(() => parsePeriods(BY_PRIORITY, byPriority));
  const seconds = (flag: string, text: string): number => understood(() => parseSeconds(flag, text));
  const graceSeconds = seconds('--shutdown-grace-period', options.shutdownGracePeriod);
  const criticalSeconds = seconds('--shutdown-grace-period-critical-pods', options.shutdownGracePeriodCriticalPods);
  if (criticalSeconds > graceSeconds)
    throw new UserError(
      '--shutdown-grace-period-critical-pods must not be longer than --shutdown-grace-period, which includes it',
    );
  return periodsOf(graceSeconds, criticalSeconds);
}

export const allowedSysctls = ({ allowedUnsafeSysctls }: Required<NodeOptions>): string[] =>
  understood(() => parseAllowedSysctls(allowedUnsafeSysctls), '--allowed-unsafe-sysctls: ');

/** Returns the total by resource. Throws a UserError if an option is invalid. */
export const reservedResources = ({ kubeReserved, systemReserved }: Required<NodeOptions>): Reserved =>
  understood(() =>
    addAmounts(parseReserved('--kube-reserved', kubeReserved), parseReserved('--system-reserved', systemReserved)),
  );

export const maxPods = (options: Required<NodeOptions>): number => podCount('--max-pods', options.maxPods, 1);

/** Throws a UserError if --max-pods is 0. maxPods() accepts 0, like the kubelet, because an older lifepod may have recorded it. */
export function requireSomePods({ maxPods: text }: NodeOptions): void {
  if (text !== undefined && Number(text) === 0)
    throw new UserError(`--max-pods ${text} would let no Pod run: give 1 or more`);
}

/** With fewer processes and threads, runc cannot start the sandbox of a Pod: with 6 of them, it fails at times. */
const LEAST_PIDS = 8;

/** Throws a UserError if no Pod can start with --pod-pids-limit. An older lifepod may have recorded a lower value, which is accepted. */
export function requireUsablePids({ podPidsLimit: limit }: { podPidsLimit?: number }): void {
  if (limit === undefined || limit === -1 || (Number.isSafeInteger(limit) && limit >= LEAST_PIDS)) return;
  throw new UserError(
    `--pod-pids-limit ${limit} is too low to start a Pod: give ${LEAST_PIDS} or more, or -1 for no limit`,
  );
}

export const terminatedPods = (options: Required<NodeOptions>): number =>
  podCount('--terminated-pod-gc-threshold', options.terminatedPodGcThreshold, 0);

export function hasTerminatingPhase({ terminatingPhase }: Required<NodeOptions>): boolean {
  if (terminatingPhase === 'true' || terminatingPhase === 'false') return terminatingPhase === 'true';
  throw new UserError(`--terminating-phase ${terminatingPhase} is not valid: give true or false`);
}

/** `least` is only named in the message, not enforced. */
function podCount(flag: string, text: string, least: number): number {
  const count = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(count))
    throw new UserError(`${flag} ${text} is not a valid number of Pods: give ${least} or more`);
  return count;
}

function understood<T>(parse: () => T, before = ''): T {
  try {
    return parse();
  } catch (error) {
    throw new UserError(`${before}${(error as Error).message}`);
  }
}

/**
 * Composes the systemd units that run an engine. SIGTERM stops lifepod and leaves its Pods running, so a second unit ends the Pods when the
 * machine shuts down. systemd stops units in the reverse order of their start, so lifepod and the machine's containerd still run then.
 *
 * Invariants: the first line names the data folder, and shows that lifepod has written the file and may replace it. The settings, except
 * those of the log, are recorded in the data folder, so that the units remain valid when `lifepod up` changes one.
 * Sources: systemd.unit(5), systemd.service(5), systemd.kill(5), systemd.exec(5).
 */
import { realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { readTextIfPresent } from '../../platform/files.ts';

export const UNIT_FOLDER = '/etc/systemd/system';
export const ENGINE_UNIT = 'lifepod.service';
export const SHUTDOWN_UNIT = 'lifepod-shutdown.service';
export const UNITS = [ENGINE_UNIT, SHUTDOWN_UNIT] as const;

const SYSTEMD_PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
/** The time that `lifepod shutdown-node` has in addition to the grace period, for example to start the engine and to stop containers. */
const SHUTDOWN_MARGIN_SECONDS = 60;

const WRITTEN_BY = "# Written by 'lifepod up --install-service' for ";
const ADVICE = "# The next one replaces this file. Use 'systemctl edit' to change the unit.";

export interface Service {
  launcher: string;
  dataDir: string;
  /** The folder of the Node.js that runs lifepod, if the launcher does not find it without the PATH of the user. */
  nodeFolder?: string;
  /** Whether systemd-notify is missing, so that lifepod cannot report that its API listens. */
  isSilent?: boolean;
  logLevel?: string;
  logFormat?: string;
  /** The longest time that the Pods may take to end at a shutdown of the machine. */
  graceSeconds: number;
}

/** Returns whether lifepod has written a unit for the engine. systemd need not run the engine now. */
export function hasService(dataDir: string, folder = UNIT_FOLDER): boolean {
  const unit = readTextIfPresent(join(folder, ENGINE_UNIT));
  return unit !== undefined && dataDirOf(unit) === dataDir;
}

export function dataDirOf(unit: string): string | undefined {
  const [first = ''] = unit.split('\n');
  return first.startsWith(WRITTEN_BY) ? first.slice(WRITTEN_BY.length) : undefined;
}

export function unitsOf(service: Service): Record<(typeof UNITS)[number], string> {
  const { launcher, dataDir, nodeFolder, isSilent, logLevel, logFormat, graceSeconds } = service;
  const command = (name: string, ...args: string[]): string =>
    [launcher, name, '--data-dir', dataDir, ...args].map(wordOf).join(' ');
  const environment =
    nodeFolder === undefined ? [] : [`Environment=${wordOf(`PATH=${[...SYSTEMD_PATH, nodeFolder].join(delimiter)}`)}`];
  const begin = [`${WRITTEN_BY}${dataDir}`, ADVICE, '[Unit]'];
  const end = ['[Install]', 'WantedBy=multi-user.target', ''];
  const engine = [
    ...begin,
    'Description=lifepod, which runs Kubernetes Pods on this machine',
    // A clock that jumps would change ages and deadlines of Pods.
    'After=network-online.target time-sync.target containerd.service',
    'Wants=network-online.target time-sync.target',
    // systemd would give up after five starts in 10 s, while the machine's containerd is being replaced.
    'StartLimitIntervalSec=0',
    '[Service]',
    // A child process of lifepod reports that the API listens (notify.ts), so NotifyAccess is all. The report may take any time, because
    // the engine waits for its runtime.
    ...(isSilent === true ? ['Type=exec'] : ['Type=notify', 'NotifyAccess=all', 'TimeoutStartSec=infinity']),
    ...environment,
    `ExecStart=${command('up', ...option('--log-level', logLevel), ...option('--log-format', logFormat))}`,
    // containerd, its shims and thus the Pods survive a restart of lifepod. Pods have control groups of their own, outside of the unit.
    'KillMode=process',
    'Restart=on-failure',
    'RestartSec=1',
    // 143 is the exit code after a SIGTERM of `lifepod down` during a start (signals.ts). systemd must not restart the engine then.
    'SuccessExitStatus=143',
    'TasksMax=infinity',
    // If memory runs out, the kernel kills Pods before lifepod and containerd.
    'OOMScoreAdjust=-999',
    ...end,
  ];
  const shutdown = [
    ...begin,
    'Description=shutdown guard of lifepod, which ends the Pods when the machine shuts down',
    'After=lifepod.service',
    '[Service]',
    'Type=oneshot',
    'RemainAfterExit=yes',
    ...environment,
    'ExecStart=/bin/true',
    `ExecStop=${command('shutdown-node')}`,
    `TimeoutStopSec=${graceSeconds + SHUTDOWN_MARGIN_SECONDS}`,
    ...end,
  ];
  return { [ENGINE_UNIT]: engine.join('\n'), [SHUTDOWN_UNIT]: shutdown.join('\n') };
}

const option = (flag: string, value: string | undefined): string[] => (value === undefined ? [] : [flag, value]);

/** Returns the text as one word of a command line in a unit, without expansions by systemd. */
function wordOf(text: string): string {
  const escaped = text.replaceAll('%', '%%').replaceAll('$', '$$$$');
  return /^[\w@+=:,./%$-]+$/.test(escaped) ? escaped : `"${escaped.replaceAll(/["\\]/g, '\\$&')}"`;
}

/** Returns the folder of the Node.js that runs this process; undefined if the launcher also finds it when systemd runs the launcher. */
export function nodeFolderFor(launcher: string, execPath = process.execPath): string | undefined {
  const root = dirname(dirname(launcher));
  const beside = [
    join(root, 'node_modules/node/bin'),
    join(dirname(root), 'node/bin'),
    join(root.replace(/\/lib\/node_modules\/lifepod$/, ''), 'bin'),
  ];
  const found = [...beside, ...SYSTEMD_PATH].some((folder) => realPath(join(folder, 'node')) === realPath(execPath));
  return found ? undefined : dirname(execPath);
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** Formats the report of `lifepod status` as text and as JSON. Pure. */
import { humanDuration } from '../../api/table.ts';
import { shortCommit } from '../../engine/version.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';

export interface Trouble {
  kind:
    | 'Program'
    | 'Disk'
    | 'Certificate'
    | 'Port'
    | 'Network'
    | 'Service'
    | 'StaticManifest'
    | 'Node'
    | 'Deployment'
    | 'ReplicaSet'
    | 'ReplicationController'
    | 'Job'
    | 'StatefulSet'
    | 'DaemonSet'
    | 'Pod';
  namespace?: string | undefined;
  /** The name of the object, or the path of the manifest. */
  name?: string;
  uid?: string | undefined;
  /** One word, such as ErrImagePull. Only troubles of objects have a reason. */
  reason?: string;
  since?: Millis | undefined;
  /** A sentence. A sentence about a Pod or workload begins with the name of the object. */
  message: string;
  /** The command that explains the trouble. Only troubles of Pods, workloads and Services have one. */
  command?: string;
}

export interface StatusReport {
  /** Facts about the engine; present if it runs on this machine, and the user may read its data folder. */
  engine?: {
    version: string;
    /** The hash of the commit from which the engine was built; undefined if it is not known. */
    commit?: string | undefined;
    pid: number;
    upMillis: Millis;
    dataDir: string;
    podCidr: string;
    serviceCidr: string;
    /** The resident memory of the processes. `dns` and `containerd` are 0 if lifepod has not started them. */
    memoryBytes: { engine: number; dns: number; containerd: number; shims: number };
    shims: number;
    /** A warning about a risk, which does not count as a trouble. */
    warning?: string | undefined;
  };
  server: string;
  kubernetesVersion: string | undefined;
  nodes: { name: string; ready: boolean; runtime: string }[];
  /** The number of Pods by the word that kubectl shows in its column STATUS. */
  podsByStatus: ReadonlyMap<string, number>;
  troubles: Trouble[];
  unread: string[];
}

const SHOWN_OBJECTS = 20;
const MAX_MESSAGE_LENGTH = 300;

/** `listAll` is the command that lists all troubles. */
export function reportLines(report: StatusReport, listAll: string, now: Millis): string[] {
  const { engine, nodes, podsByStatus, troubles, unread } = report;
  const pods = [...podsByStatus];
  const total = pods.reduce((sum, [, count]) => sum + count, 0);
  const heads = [
    ...(engine === undefined
      ? []
      : [
          `lifepod   ${engine.version}, PID ${engine.pid}, up ${humanDuration(engine.upMillis)}, data in ${engine.dataDir}${engine.commit === undefined ? '' : `, commit ${shortCommit(engine.commit)}`}`,
        ]),
    `API       ${report.server}, Kubernetes ${report.kubernetesVersion ?? 'unknown'}`,
    ...nodes.map(({ name, ready, runtime }) => `node      ${name}, ${ready ? 'Ready' : 'NotReady'}, ${runtime}`),
    ...(engine === undefined ? [] : engineLines(engine)),
    `Pods      ${[String(total), ...pods.map(([status, count]) => `${count} ${status}`)].join(', ')}`,
  ];
  const ofObjects = troubles.filter(isNamespaced);
  const others = troubles.filter((trouble) => !isNamespaced(trouble));
  const shown = ofManyReasons(ofObjects, SHOWN_OBJECTS);
  const hidden = ofObjects.length - shown.length;
  const what = `${ofObjects.every(({ kind }) => kind === 'Pod') ? 'Pod' : 'object'}${hidden === 1 ? '' : 's'}`;
  return [
    ...heads,
    troubles.length === 0 ? 'unhealthy none' : 'unhealthy',
    ...[...others, ...shown].map((trouble) => `  ${troubleLine(trouble, now)}`),
    ...(hidden > 0 ? [`  and ${hidden} more ${what}: ${listAll} lists all`] : []),
    ...(unread.length === 0 ? [] : ['unknown', ...unread.map((sentence) => `  ${sentence}`)]),
  ];
}

const isNamespaced = ({ namespace }: Trouble): boolean => namespace !== undefined;

/** Returns at most `count` troubles in the given order, with as many different reasons as possible. */
function ofManyReasons(troubles: readonly Trouble[], count: number): Trouble[] {
  const groups = [...Map.groupBy(troubles, ({ reason }) => reason).values()];
  const chosen = new Set<Trouble>();
  for (let rank = 0; chosen.size < Math.min(count, troubles.length); rank++)
    for (const group of groups) {
      const trouble = group[rank];
      if (trouble !== undefined && chosen.size < count) chosen.add(trouble);
    }
  return troubles.filter((trouble) => chosen.has(trouble));
}

function engineLines({ podCidr, serviceCidr, memoryBytes, shims, warning }: NonNullable<StatusReport['engine']>) {
  const parts = [
    `engine ${mebibytes(memoryBytes.engine)}`,
    ...(memoryBytes.dns > 0 ? [`DNS ${mebibytes(memoryBytes.dns)}`] : []),
    ...(memoryBytes.containerd > 0 ? [`containerd ${mebibytes(memoryBytes.containerd)}`] : []),
    ...(shims > 0 ? [`${shims} ${shims === 1 ? 'shim' : 'shims'} ${mebibytes(memoryBytes.shims)}`] : []),
  ];
  return [
    `networks  Pods ${podCidr}, Services ${serviceCidr}`,
    `memory    ${parts.join(', ')}`,
    ...(warning === undefined ? [] : [`warning   ${warning}`]),
  ];
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`;

function troubleLine(trouble: Trouble, now: Millis): string {
  const { kind, namespace, name, reason, since, message, command } = trouble;
  if (!isNamespaced(trouble)) return message;
  const time = since === undefined ? '' : ` for ${humanDuration(Math.max(0, now - since))}`;
  const said = message.startsWith(`${name} `) ? message.slice(`${name} `.length) : message;
  const full = said.replace(/\.+$/, '');
  const short = full.length > MAX_MESSAGE_LENGTH ? `${full.slice(0, MAX_MESSAGE_LENGTH)}…` : full;
  return `${kind} ${namespace}/${name}: ${reason}${time}: ${short}; see: ${command}`;
}

/**
 * Returns the object that `-o json` prints. README.md documents its fields: some may be added, but none is removed or changes its meaning.
 */
export function reportJson({ engine, ...report }: StatusReport): object {
  return {
    healthy: report.troubles.length === 0,
    ...(engine === undefined
      ? {}
      : {
          engine: {
            version: engine.version,
            ...(engine.commit === undefined ? {} : { commit: engine.commit }),
            pid: engine.pid,
            uptimeSeconds: Math.floor(engine.upMillis / 1000),
            dataDir: engine.dataDir,
            podCIDR: engine.podCidr,
            serviceCIDR: engine.serviceCidr,
            memoryBytes: engine.memoryBytes,
            ...(engine.warning === undefined ? {} : { warning: engine.warning }),
          },
        }),
    server: report.server,
    kubernetesVersion: report.kubernetesVersion,
    nodes: report.nodes,
    podsByStatus: Object.fromEntries(report.podsByStatus),
    troubles: report.troubles.map(({ since, ...trouble }) => ({
      ...trouble,
      ...(since === undefined ? {} : { since: formatTime(since) }),
    })),
    unread: report.unread,
  };
}

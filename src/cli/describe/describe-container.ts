/** Describes one container like kubectl describe. Pure, except for the time zone. Source: kubectl describe of v1.33 (layout, wording). */
import type {
  Container,
  ContainerPort,
  ContainerState,
  ContainerStatus,
  EnvVar,
  Pod,
  Probe,
  ResourceFieldSelector,
  ResourceRequirements,
} from '../../api/generated/types.ts';
import { parseTime } from '../../machinery/time.ts';
import { resourceFieldValue } from '../../node/container/downward.ts';

/** Returns the lines about the container, with tabs between columns. The lines of `more` follow those about ports and seccomp. */
export function containerLines(
  container: Container,
  status: ContainerStatus | undefined,
  more: readonly string[],
  pod: Pod,
): string[] {
  return [
    `  ${container.name}:`,
    ...(status === undefined ? [] : [`    Container ID:\t${status.containerID ?? ''}`]),
    `    Image:\t${container.image ?? ''}`,
    ...(status === undefined ? [] : [`    Image ID:\t${status.imageID}`]),
    ...portLines(container.ports ?? []),
    ...seccompLines(container),
    ...more,
    ...wordLines('Command', container.command ?? []),
    ...wordLines('Args', container.args ?? []),
    ...(status === undefined ? [] : statusLines(status)),
    ...resourceLines(container.resources ?? {}),
    ...probeLines('Liveness', container.livenessProbe),
    ...probeLines('Readiness', container.readinessProbe),
    ...probeLines('Startup', container.startupProbe),
    ...environmentLines(container, pod),
    ...mountLines(container),
  ];
}

function portLines(ports: readonly ContainerPort[]): string[] {
  const line = (label: string, number: (port: ContainerPort) => number): string => {
    const texts = ports.map((port) => `${number(port)}/${port.protocol ?? 'TCP'}`);
    return `    ${label}${texts.length > 1 ? 's' : ''}:\t${texts.join(', ') || '<none>'}`;
  };
  return [line('Port', (port) => port.containerPort), line('Host Port', (port) => port.hostPort ?? 0)];
}

function seccompLines({ securityContext }: Container): string[] {
  const profile = securityContext?.seccompProfile;
  if (profile === undefined) return [];
  const local = profile.type === 'Localhost' ? [`      LocalhostProfile:\t${profile.localhostProfile ?? ''}`] : [];
  return [`    SeccompProfile:\t${profile.type}`, ...local];
}

const wordLines = (label: string, words: readonly string[]): string[] =>
  words.length === 0
    ? []
    : [`    ${label}:`, ...words.flatMap((word) => word.split('\n').map((line) => `      ${line}`))];

function statusLines({ state, lastState, ready, restartCount }: ContainerStatus): string[] {
  return [
    ...stateLines('State', state ?? {}),
    ...(lastState?.terminated === undefined ? [] : stateLines('Last State', lastState)),
    `    Ready:\t${ready ? 'True' : 'False'}`,
    `    Restart Count:\t${restartCount}`,
  ];
}

function stateLines(label: string, { running, waiting, terminated }: ContainerState): string[] {
  const detail = (name: string, value: string | number | undefined): string[] =>
    value === undefined || value === '' ? [] : [`      ${name}:\t${value}`];
  const time = (text: string | undefined): string | undefined => (text === undefined ? undefined : timeText(text));
  if (running !== undefined) return [`    ${label}:\tRunning`, ...detail('Started', time(running.startedAt))];
  if (terminated !== undefined) {
    const { reason, message, exitCode, signal, startedAt, finishedAt } = terminated;
    return [
      `    ${label}:\tTerminated`,
      ...detail('Reason', reason),
      ...detail('Message', message),
      ...detail('Exit Code', exitCode),
      ...detail('Signal', signal || undefined),
      ...detail('Started', time(startedAt)),
      ...detail('Finished', time(finishedAt)),
    ];
  }
  return [`    ${label}:\tWaiting`, ...detail('Reason', waiting?.reason)];
}

function resourceLines({ limits = {}, requests = {} }: ResourceRequirements): string[] {
  const list = (label: string, resources: Readonly<Record<string, string>>): string[] => {
    const names = Object.keys(resources).sort();
    if (names.length === 0) return [];
    return [`    ${label}:`, ...names.map((name) => `      ${name}:\t${resources[name]}`)];
  };
  return [...list('Limits', limits), ...list('Requests', requests)];
}

function probeLines(label: string, probe: Probe | undefined): string[] {
  if (probe === undefined) return [];
  const { initialDelaySeconds = 0, timeoutSeconds = 0, periodSeconds = 0, successThreshold = 0 } = probe;
  const times =
    `delay=${initialDelaySeconds}s timeout=${timeoutSeconds}s period=${periodSeconds}s ` +
    `#success=${successThreshold} #failure=${probe.failureThreshold ?? 0}`;
  return [`    ${label}:\t${probeTarget(probe)} ${times}`];
}

function probeTarget({ exec, httpGet, tcpSocket, grpc }: Probe): string {
  if (exec !== undefined) return `exec [${(exec.command ?? []).join(' ')}]`;
  if (httpGet !== undefined) {
    const { scheme = 'HTTP', host = '', port, path = '' } = httpGet;
    return `http-get ${scheme.toLowerCase()}://${host}:${port}${path}`;
  }
  if (tcpSocket !== undefined) return `tcp-socket ${tcpSocket.host ?? ''}:${tcpSocket.port}`;
  if (grpc !== undefined) return `grpc <pod>:${grpc.port} ${grpc.service ?? ''}`;
  return 'unknown';
}

function environmentLines(container: Container, pod: Pod): string[] {
  const { env = [], envFrom = [] } = container;
  const optional = (source: { optional?: boolean }): string => `Optional: ${source.optional === true}`;
  const from = envFrom.map(({ prefix, configMapRef, secretRef }) => {
    const source = configMapRef ?? secretRef ?? {};
    const kind = configMapRef === undefined ? 'Secret' : 'ConfigMap';
    return `      ${source.name ?? ''}\t${kind}${prefix ? ` with prefix '${prefix}'` : ''}\t${optional(source)}`;
  });
  return [
    ...(from.length === 0 ? [] : ['    Environment Variables from:', ...from]),
    `    Environment:${env.length === 0 ? '\t<none>' : ''}`,
    ...env.flatMap((variable) => variableLines(variable, container, pod)),
  ];
}

function variableLines({ name, value = '', valueFrom }: EnvVar, container: Container, pod: Pod): string[] {
  const line = (text: string): string[] => [`      ${name}:\t${text}`];
  if (valueFrom === undefined) {
    return value.split('\n').map((text, index) => `      ${index === 0 ? `${name}:` : ''}\t${text}`);
  }
  const { fieldRef, resourceFieldRef, secretKeyRef, configMapKeyRef } = valueFrom;
  const optional = (source: { optional?: boolean }): string => `Optional: ${source.optional === true}`;
  if (fieldRef !== undefined) {
    const { fieldPath, apiVersion = 'v1' } = fieldRef;
    // kubectl prints the values of only these fields.
    const known: Readonly<Record<string, string | undefined>> = {
      'metadata.name': pod.metadata.name,
      'metadata.namespace': pod.metadata.namespace,
    };
    return line(`${known[fieldPath] ?? ''} (${apiVersion}:${fieldPath})`);
  }
  if (resourceFieldRef !== undefined) {
    return line(`${resourceText(resourceFieldRef, container, pod)} (${resourceFieldRef.resource})`);
  }
  if (secretKeyRef !== undefined) {
    return line(`<set to the key '${secretKeyRef.key}' in secret '${secretKeyRef.name}'>\t${optional(secretKeyRef)}`);
  }
  if (configMapKeyRef !== undefined) {
    const { key, name: map } = configMapKeyRef;
    return line(`<set to the key '${key}' of config map '${map}'>\t${optional(configMapKeyRef)}`);
  }
  return [];
}

/**
 * Like kubectl, which does not read the allocatable resources of the node, returns `node allocatable` for a CPU or memory limit that the
 * container does not have.
 */
function resourceText(selector: ResourceFieldSelector, container: Container, pod: Pod): string {
  const none = { nodeName: '', hostIps: [], podIps: [], allocatable: {} };
  const value = resourceFieldValue({ ...selector, containerName: '' }, pod, container, none);
  return value === '0' && /^limits\.(cpu|memory)$/.test(selector.resource) ? 'node allocatable' : value;
}

function mountLines({ volumeMounts = [], volumeDevices = [] }: Container): string[] {
  const mounts = [...volumeMounts].sort((a, b) => (a.mountPath < b.mountPath ? -1 : 1));
  const devices = [...volumeDevices].sort((a, b) => (a.devicePath < b.devicePath ? -1 : 1));
  return [
    `    Mounts:${mounts.length === 0 ? '\t<none>' : ''}`,
    ...mounts.map(({ mountPath, name, readOnly, subPath }) => {
      const flags = [readOnly === true ? 'ro' : 'rw', ...(subPath ? [`path=${JSON.stringify(subPath)}`] : [])];
      return `      ${mountPath} from ${name} (${flags.join(',')})`;
    }),
    ...(devices.length === 0 ? [] : [`    Devices:${mounts.length === 0 ? '\t<none>' : ''}`]),
    ...devices.map(({ devicePath, name }) => `      ${devicePath} from ${name}`),
  ];
}

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/**
 * Formats an RFC 3339 time like `Sat, 31 Jan 2026 09:30:00 +0000`, in the local time zone. Returns any other text unchanged.
 * Source: Go's time.RFC1123Z.
 */
export function timeText(text: string): string {
  const millis = parseTime(text);
  if (millis === undefined) return text;
  const time = new Date(millis);
  const two = (value: number): string => String(value).padStart(2, '0');
  const offset = -time.getTimezoneOffset();
  const zone = `${offset < 0 ? '-' : '+'}${two(Math.floor(Math.abs(offset) / 60))}${two(Math.abs(offset) % 60)}`;
  const date = `${DAYS[time.getDay()]}, ${two(time.getDate())} ${MONTHS[time.getMonth()]} ${time.getFullYear()}`;
  return `${date} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())} ${zone}`;
}

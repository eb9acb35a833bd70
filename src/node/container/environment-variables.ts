/**
 * The order of the variables is: envFrom, then env, then those variables of Services whose names are not set yet. A variable in env may
 * refer to earlier variables and to variables of Services.
 * Source: pkg/kubelet makeEnvironmentVariables and pkg/kubelet/envvars of v1.33 (behavior and error texts).
 */
import type {
  ConfigMap,
  Container,
  EnvFromSource,
  EnvVar,
  EphemeralContainer,
  Pod,
  Secret,
  Service,
} from '../../api/generated/types.ts';
import { putNewest } from '../bounded-map.ts';
import { ContainerConfigError } from './container-config-error.ts';
import { type DownwardFacts, fieldValue, ownValue, resourceFieldValue } from './downward.ts';
import { expand, MAX_PROCESS_BYTES, processTooLarge } from './expand.ts';

export interface EnvironmentFacts extends DownwardFacts {
  /**
   * All Services. Containers get variables of default/kubernetes and, unless enableServiceLinks is false, of the Services with a cluster IP
   * in the Pod's namespace.
   */
  services: readonly Service[];
  /** Returns an object of the Pod's namespace; undefined if it does not exist. */
  configMap(name: string): ConfigMap | undefined;
  secret(name: string): Secret | undefined;
}

/** Throws a ContainerConfigError if a reference cannot be resolved or the variables are too large. */
export function containerEnvironment(
  pod: Pod,
  container: Container | EphemeralContainer,
  facts: EnvironmentFacts,
): Map<string, string> {
  const result = new BoundedVariables();
  for (const source of container.envFrom ?? []) addAll(result, source, facts);
  const services = serviceVariables(pod, facts.services);
  const lookup = (name: string): string | undefined => result.get(name) ?? services.get(name);
  for (const variable of container.env ?? []) {
    const value =
      variable.valueFrom === undefined || variable.valueFrom === null
        ? expand(variable.value ?? '', lookup)
        : valueFrom(variable, pod, container, facts);
    if (value !== undefined) result.set(variable.name, value);
  }
  for (const [name, value] of services) if (!result.has(name)) result.set(name, value);
  return result;
}

/** The total size is limited to MAX_PROCESS_BYTES characters. Values that were replaced count as well, so that the work is bounded. */
class BoundedVariables extends Map<string, string> {
  #bytes = 0;
  override set(name: string, value: string): this {
    this.#bytes += name.length + value.length;
    if (this.#bytes > MAX_PROCESS_BYTES) throw processTooLarge();
    return super.set(name, value);
  }
}

/** The relaxed rule of v1.33: printable ASCII without `=`. */
const isVariableName = (name: string): boolean => /^[ -<>-~]+$/.test(name);

function addAll(result: Map<string, string>, source: EnvFromSource, facts: EnvironmentFacts): void {
  const add = (data: Record<string, string> | undefined, read: (value: string) => string): void => {
    for (const key of Object.keys(data ?? {}).sort()) {
      const name = (source.prefix ?? '') + key;
      if (isVariableName(name)) result.set(name, read(data?.[key] as string));
    }
  };
  if (source.configMapRef !== undefined) {
    add(
      found('configmap', source.configMapRef.name ?? '', source.configMapRef.optional, facts.configMap)?.data,
      (v) => v,
    );
  } else if (source.secretRef !== undefined) {
    add(found('secret', source.secretRef.name ?? '', source.secretRef.optional, facts.secret)?.data, decodeBase64);
  }
}

/** Returns undefined if the reference is optional and the object or key does not exist. */
function valueFrom(
  variable: EnvVar,
  pod: Pod,
  container: Container | EphemeralContainer,
  facts: EnvironmentFacts,
): string | undefined {
  const from = variable.valueFrom ?? {};
  const namespace = pod.metadata.namespace ?? '';
  try {
    if (from.fieldRef !== undefined) return fieldValue(from.fieldRef, pod, facts);
    if (from.resourceFieldRef !== undefined) return resourceFieldValue(from.resourceFieldRef, pod, container, facts);
  } catch (error) {
    throw new ContainerConfigError((error as Error).message);
  }
  if (from.configMapKeyRef !== undefined) {
    const { name = '', key, optional } = from.configMapKeyRef;
    const object = found('configmap', name, optional, facts.configMap);
    const value = ownValue(object?.data, key);
    if (value === undefined && optional !== true) {
      throw new ContainerConfigError(`couldn't find key ${key} in ConfigMap ${namespace}/${name}`);
    }
    return value;
  }
  if (from.secretKeyRef !== undefined) {
    const { name = '', key, optional } = from.secretKeyRef;
    const value = ownValue(found('secret', name, optional, facts.secret)?.data, key);
    if (value === undefined && optional !== true) {
      throw new ContainerConfigError(`couldn't find key ${key} in Secret ${namespace}/${name}`);
    }
    return value === undefined ? undefined : decodeBase64(value);
  }
  return '';
}

const decodeBase64 = (value: string): string => Buffer.from(value, 'base64').toString('utf8');

function found<T>(
  kind: 'configmap' | 'secret',
  name: string,
  optional: boolean | undefined,
  lookup: (name: string) => T | undefined,
): T | undefined {
  const object = lookup(name);
  if (object === undefined && optional !== true)
    throw new ContainerConfigError(`${kind} ${JSON.stringify(name)} not found`);
  return object;
}

type Variables = ReadonlyMap<string, string>;

/** By namespace and enableServiceLinks. An error means that the variables are too large for any container. */
const cache = new WeakMap<readonly Service[], Map<string, Variables | ContainerConfigError>>();
/** Small, because an entry may have 6 MiB. */
const MAX_CACHED = 8;

/**
 * The variables are cached, since a namespace may have many thousands of ports and a Pod thousands of containers. Throws a
 * ContainerConfigError if the variables are too large.
 */
function serviceVariables(pod: Pod, services: readonly Service[]): Variables {
  const { namespace = '' } = pod.metadata;
  const links = pod.spec?.enableServiceLinks !== false;
  const key = `${namespace}/${links}`;
  const cached = cache.get(services) ?? new Map<string, Variables | ContainerConfigError>();
  cache.set(services, cached);
  const outcome = cached.get(key) ?? variablesOf(visibleServices(namespace, links, services));
  putNewest(cached, key, outcome, MAX_CACHED);
  if (outcome instanceof ContainerConfigError) throw outcome;
  return outcome;
}

function visibleServices(namespace: string, links: boolean, services: readonly Service[]): Service[] {
  const visible = services.filter((service) => {
    const ip = service.spec?.clusterIP ?? '';
    if (ip === '' || ip === 'None') return false;
    if (links && service.metadata.namespace === namespace) return true;
    return service.metadata.name === 'kubernetes' && service.metadata.namespace === 'default';
  });
  // Sort default/kubernetes first, so that a Service `kubernetes` in the Pod's namespace replaces the variables of default/kubernetes.
  return visible.sort(
    (a, b) => Number(a.metadata.namespace === namespace) - Number(b.metadata.namespace === namespace),
  );
}

function variablesOf(services: readonly Service[]): Variables | ContainerConfigError {
  const result = new BoundedVariables();
  try {
    for (const service of services) addService(result, service);
  } catch (error) {
    if (error instanceof ContainerConfigError) return error;
    throw error;
  }
  return result;
}

const variableName = (text: string): string => text.toUpperCase().replaceAll('-', '_');

function addService(result: Map<string, string>, service: Service): void {
  const prefix = variableName(service.metadata.name);
  const ip = service.spec?.clusterIP as string;
  const ports = service.spec?.ports ?? [];
  result.set(`${prefix}_SERVICE_HOST`, ip);
  if (ports[0] === undefined) return;
  result.set(`${prefix}_SERVICE_PORT`, String(ports[0].port));
  for (const port of ports) {
    if (port.name !== undefined && port.name !== '') {
      result.set(`${prefix}_SERVICE_PORT_${variableName(port.name)}`, String(port.port));
    }
  }
  const address = ip.includes(':') ? `[${ip}]` : ip;
  ports.forEach((port, index) => {
    const protocol = port.protocol ?? 'TCP';
    const url = `${protocol.toLowerCase()}://${address}:${port.port}`;
    const base = `${prefix}_PORT_${port.port}_${protocol.toUpperCase()}`;
    if (index === 0) result.set(`${prefix}_PORT`, url);
    result.set(base, url);
    result.set(`${base}_PROTO`, protocol.toLowerCase());
    result.set(`${base}_PORT`, String(port.port));
    result.set(`${base}_ADDR`, ip);
  });
}

/** Returns the names of the ConfigMaps and Secrets that containerEnvironment() will look up. */
export function environmentReferences(container: Container | EphemeralContainer): {
  configMaps: Set<string>;
  secrets: Set<string>;
} {
  const configMaps = new Set<string>();
  const secrets = new Set<string>();
  const add = (set: Set<string>, name: string | undefined): void => {
    if (name !== undefined) set.add(name);
  };
  for (const source of container.envFrom ?? []) {
    add(configMaps, source.configMapRef?.name);
    add(secrets, source.secretRef?.name);
  }
  for (const { valueFrom: from } of container.env ?? []) {
    add(configMaps, from?.configMapKeyRef?.name);
    add(secrets, from?.secretKeyRef?.name);
  }
  return { configMaps, secrets };
}

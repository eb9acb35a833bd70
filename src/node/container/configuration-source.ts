import { existsSync } from 'node:fs';
import type {
  ConfigMap,
  Container,
  EphemeralContainer,
  Pod,
  RuntimeClass,
  Secret,
  Service,
  VolumeMount,
} from '../../api/generated/types.ts';
import { coreResource, RUNTIME_CLASSES } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import type { Informer } from '../../client/informer.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { RuntimeFeatures } from '../../runtime/runtime.ts';
import type { CgroupFacts } from '../node-facts.ts';
import type { KeptReferences } from '../pod/kept-references.ts';
import type { FileSource } from '../volumes/references.ts';
import type { PodEnvironment } from './container-config.ts';
import type { DnsFacts } from './dns-config.ts';
import { environmentReferences } from './environment-variables.ts';
import { readNodeResolver } from './node-resolver.ts';

export interface PodEnvironmentOptions {
  client: Client;
  nodeName: string;
  /** Addresses of the node, the primary one first. */
  hostIps: readonly string[];
  allocatable: Readonly<Record<string, string>>;
  memoryCapacityBytes: number;
  clusterDns: readonly string[];
  clusterDomain: string;
  /** The file for readNodeResolver(); undefined or '': the machine's files. */
  resolvConf?: string | undefined;
  logsRoot: string;
  seccompRoot: string;
  /** Returns the parent control group for the Pod's containers. Absent: the runtime chooses. */
  cgroupParent?(pod: Pod): string;
  cgroups?: CgroupFacts;
  runtimeFeatures?: RuntimeFeatures | undefined;
  services: Pick<Informer<Service>, 'synced' | 'list'>;
  /** The copies of the objects that defer containers refer to, used if the API does not return an object. */
  kept?: Pick<KeptReferences, 'keep' | 'find'>;
  isStatic(pod: Pod): boolean;
  /** Returns the addresses of the Pod's last ready sandbox; empty before a sandbox is ready. */
  podIps(pod: Pod): readonly string[];
  podDirectory(podUid: string): string;
  volumePath(podUid: string, pod: Pod, volumeName: string): string;
}

const dependsOnHandler = ({ recursiveReadOnly = 'Disabled' }: VolumeMount): boolean => recursiveReadOnly !== 'Disabled';

/**
 * Returns the facts for the configuration of the container, or of the sandbox if `container` is undefined. Omits objects that do not exist.
 * For a defer container, a copy replaces an object that does not exist or cannot be read. For another container, also copies the objects
 * that the Pod's defer containers refer to. Rejects if the RuntimeClass, or an object without a copy, cannot be read, or if `signal` is
 * aborted.
 */
export type EnvironmentSource = (
  pod: Pod,
  container: Container | EphemeralContainer | undefined,
  signal: AbortSignal,
) => Promise<PodEnvironment>;

export function createEnvironmentSource(options: PodEnvironmentOptions): EnvironmentSource {
  const { client, clusterDns, clusterDomain, resolvConf, kept } = options;
  const seLinux = existsSync('/sys/fs/selinux/enforce');
  const runtimeClasses = client.resource<RuntimeClass>(RUNTIME_CLASSES);
  const servicesFor = createServiceLookup(options);
  const dnsFacts = (): DnsFacts => ({ clusterDns, clusterDomain, host: readNodeResolver(resolvConf) });

  return async (pod, container, signal) => {
    const uid = uidOf(pod);
    const isDefer = (pod.spec?.deferContainers ?? []).some(({ name }) => name === container?.name);
    const source: ReferenceSource = { client, kept: isDefer ? kept : undefined };
    const references = container === undefined ? undefined : environmentReferences(container);
    const className = needsRuntimeHandler(container) ? pod.spec?.runtimeClassName : undefined;
    const [configMaps, secrets, services, runtimeClass] = await Promise.all([
      readReferences<ConfigMap>(source, pod, 'configmaps', references?.configMaps ?? []),
      readReferences<Secret>(source, pod, 'secrets', references?.secrets ?? []),
      container === undefined ? [] : servicesFor(pod),
      className === undefined ? undefined : runtimeClasses.get(className),
      container === undefined || isDefer ? undefined : kept?.keep(pod),
    ]);
    signal.throwIfAborted();
    return {
      nodeName: options.nodeName,
      hostIps: options.hostIps,
      podIps: options.podIps(pod),
      allocatable: options.allocatable,
      services,
      configMap: (name) => configMaps.get(name),
      secret: (name) => secrets.get(name),
      dns: dnsFacts(),
      podDirectory: options.podDirectory(uid),
      logsRoot: options.logsRoot,
      seccompRoot: options.seccompRoot,
      memoryCapacityBytes: options.memoryCapacityBytes,
      volumePath: (name) => options.volumePath(uid, pod, name),
      cgroupParent: options.cgroupParent?.(pod),
      runtimeHandler: runtimeClass?.handler,
      seLinux,
      runtimeFeatures: options.runtimeFeatures,
      cgroups: options.cgroups,
    };
  };
}

const needsRuntimeHandler = (container: Container | EphemeralContainer | undefined): boolean =>
  container === undefined || (container.volumeMounts ?? []).some(dependsOnHandler);

type ReferenceSource = Pick<PodEnvironmentOptions, 'client'> & { kept: PodEnvironmentOptions['kept'] };

/** A copy replaces an object that cannot be read. Omits objects that neither exist nor have a copy. */
async function readReferences<T extends KubeObject>(
  { client, kept }: ReferenceSource,
  pod: Pod,
  resource: FileSource,
  names: Iterable<string>,
): Promise<Map<string, T>> {
  const api = client.resource<T>(coreResource(resource));
  const found = new Map<string, T>();
  await Promise.all(
    [...names].map(async (name) => {
      try {
        found.set(name, await api.get(name, pod.metadata.namespace));
      } catch (error) {
        const copy = await kept?.find<T>(pod, resource, name);
        if (copy !== undefined) found.set(name, copy);
        else if (!isApiError(error, 'NotFound')) throw error;
      }
    }),
  );
  return found;
}

/**
 * Unless the Pod is static, the returned function first waits until the Services were listed from the API, because variables cannot be
 * added to a running container. It returns the same array until a Service is added, changed or deleted, so that results can be cached per
 * array.
 */
function createServiceLookup({
  services: informer,
  isStatic,
}: Pick<PodEnvironmentOptions, 'services' | 'isStatic'>): (pod: Pod) => Promise<readonly Service[]> {
  let services: readonly Service[] = [];
  return async (pod) => {
    if (!isStatic(pod)) await informer.synced;
    const listed = informer.list();
    const isSame = listed.length === services.length && listed.every((service, index) => service === services[index]);
    if (!isSame) services = listed;
    return services;
  };
}

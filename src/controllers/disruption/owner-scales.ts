/**
 * Reports how many Pods the owners of Pods want. Owners can be of any kind with the subresource scale, including kinds that are added
 * later.
 *
 * Source: the finders of pkg/controller/disruption/disruption.go of v1.33 (behavior and wording). For an owner of a kind that has no
 * finder, upstream reads the Scale when a Pod changes. Here, informers follow all kinds, so that a new scale counts at once.
 */
import type { KindCatalog } from '../../api/catalog.ts';
import type { Pod, Scale } from '../../api/generated/types.ts';
import type { KindDefinition } from '../../api/kind.ts';
import type { Informer } from '../../client/informer.ts';
import { type KubeObject, type OwnerReference, uidOf } from '../../machinery/meta.ts';
import { groupResourceText } from '../../machinery/status.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { ControllerOptions } from '../controller.ts';
import { controllerOf, controllerUids } from '../ownership/owner.ts';
import type { OwnerScale } from './reconcile.ts';

export interface OwnerScalesOptions extends Pick<ControllerOptions, 'informers' | 'signal'> {
  catalog: KindCatalog;
  changed(uid: string): void;
  kindsChanged(): void;
}

export interface OwnerScales {
  /**
   * Returns the scale of the Pod's controller, or why its kind has none; undefined if the Pod has no controller or the controller does not
   * exist.
   */
  scaleOf(pod: Pod): OwnerScale | undefined;
  /** Returns the UIDs whose Pods count for the owner: its own UID, and the UIDs of the ReplicaSets that it controls. */
  withOwned(uid: string): string[];
  /** Resolves once the owners of all kinds that are followed now have been read. */
  synced(): Promise<unknown>;
}

interface Followed {
  informer: Informer<KubeObject>;
  stop: AbortController;
}

const groupOf = (apiVersion: string): string => (apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '');

const isDeployment = ({ apiVersion, kind }: OwnerReference): boolean =>
  kind === 'Deployment' && ['apps', 'extensions'].includes(groupOf(apiVersion));
const isReplicaSet = ({ group, kind }: KindDefinition): boolean => kind === 'ReplicaSet' && group === 'apps';

export function followOwnerScales(options: OwnerScalesOptions): OwnerScales {
  const { informers, catalog, signal, changed, kindsChanged } = options;
  const followed = new Map<KindDefinition, Followed>();

  const follow = (kind: KindDefinition): void => {
    const { group, version, plural } = kind;
    const stop = new AbortController();
    const ownerChanged = (owner: KubeObject): void => changed(uidOf(owner));
    const informer = informers.follow<KubeObject>(
      { group, version, resource: plural },
      { signal: AbortSignal.any([signal, stop.signal]) },
      {
        added: ownerChanged,
        updated(owner, old) {
          const isSame = replicasOf(kind, owner) === replicasOf(kind, old);
          if (!isSame || controllerOf(owner)?.uid !== controllerOf(old)?.uid) ownerChanged(owner);
        },
        deleted: ownerChanged,
      },
    );
    followed.set(kind, { informer, stop });
  };
  const followNew = (): void => {
    for (const kind of catalog.kinds)
      if (kind.storage === undefined && hasScale(kind) && !followed.has(kind)) follow(kind);
  };
  const onRemove = (kind: KindDefinition): void => {
    followed.get(kind)?.stop.abort();
    if (followed.delete(kind)) kindsChanged();
  };
  const onAdd = (): void => {
    followNew();
    kindsChanged();
  };
  onAbort(signal, catalog.onAdd(onAdd));
  onAbort(signal, catalog.onRemove(onRemove));
  followNew();

  const lookUp = (reference: OwnerReference, namespace: string | undefined): OwnerScale | undefined => {
    const { apiVersion, name, uid } = reference;
    // As in upstream, the version of the reference does not matter for kinds that are stored in one version.
    const kind = [...followed.keys()].find(
      ({ group, kind }) => group === groupOf(apiVersion) && kind === reference.kind,
    );
    if (kind === undefined) return { problem: unscalable(catalog, reference) };
    const owner = followed.get(kind)?.informer.get(namespace, name);
    if (owner === undefined || uidOf(owner) !== uid) return undefined;
    const above = isReplicaSet(kind) ? controllerOf(owner) : undefined;
    const deployment = above !== undefined && isDeployment(above) ? lookUp(above, namespace) : undefined;
    // A ReplicaSet whose Deployment does not exist counts with its own replicas.
    return deployment !== undefined && 'uid' in deployment ? deployment : { uid, replicas: replicasOf(kind, owner) };
  };

  return {
    scaleOf(pod) {
      const reference = controllerOf(pod);
      return reference === undefined ? undefined : lookUp(reference, pod.metadata.namespace);
    },
    withOwned(uid) {
      const sets = [...followed].filter(([kind]) => isReplicaSet(kind));
      return [uid, ...sets.flatMap(([, { informer }]) => [...informer.by(controllerUids, uid)].map(uidOf))];
    },
    synced: () => Promise.all([...followed.values()].map(({ informer }) => informer.synced)),
  };
}

const hasScale = ({ subresources }: KindDefinition): boolean => subresources['scale']?.document !== undefined;

const replicasOf = ({ subresources }: KindDefinition, owner: KubeObject): number =>
  (subresources['scale']?.document?.read(owner) as Scale | undefined)?.spec?.replicas ?? 0;

function unscalable(catalog: KindCatalog, { apiVersion, kind: name }: OwnerReference): string {
  const group = groupOf(apiVersion);
  const kind = catalog.kinds.find((each) => each.group === group && each.kind === name);
  if (kind === undefined) return `no matches for kind ${JSON.stringify(name)} in version ${JSON.stringify(apiVersion)}`;
  return `${groupResourceText({ group, resource: kind.plural })} does not implement the scale subresource`;
}

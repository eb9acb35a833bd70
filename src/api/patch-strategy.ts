/**
 * The lists that strategic merge patch merges, and their merge keys, for the served kinds. All other lists are replaced as a whole.
 * DeferContainer.onReasons is replaced too, because neither of two writers would intend the union of their reasons.
 * The OpenAPI documents contain this table as x-kubernetes-patch-merge-key and x-kubernetes-patch-strategy.
 * Source: the patchStrategy and patchMergeKey tags of the types of v1.33.
 */
import type { FieldStrategy, StrategyLookup } from '../machinery/patch/strategic-merge-patch.ts';
import { type Shape, schemaTypes } from './schema.ts';

export interface PatchStrategy {
  strategy: 'merge' | 'merge,retainKeys';
  /** The field that identifies an element; absent for lists of scalars. */
  mergeKey?: string;
}

const by = (mergeKey: string): PatchStrategy => ({ strategy: 'merge', mergeKey });

/** The strategies of the merged lists, keyed by `Type.field` of the generated schema. */
export const patchStrategies: Readonly<Record<string, PatchStrategy>> = {
  'ObjectMeta.ownerReferences': by('uid'),
  'ObjectMeta.finalizers': { strategy: 'merge' },

  'PodSpec.volumes': { strategy: 'merge,retainKeys', mergeKey: 'name' },
  'PodSpec.initContainers': by('name'),
  'PodSpec.containers': by('name'),
  'PodSpec.deferContainers': by('name'),
  'PodSpec.ephemeralContainers': by('name'),
  'PodSpec.imagePullSecrets': by('name'),
  'PodSpec.hostAliases': by('ip'),
  'PodSpec.topologySpreadConstraints': by('topologyKey'),
  'PodSpec.schedulingGates': by('name'),
  'PodSpec.resourceClaims': { strategy: 'merge,retainKeys', mergeKey: 'name' },
  'PodStatus.conditions': by('type'),
  'PodStatus.hostIPs': by('ip'),
  'PodStatus.podIPs': by('ip'),
  'PodTermination.skip': { strategy: 'merge' },
  'PodTermination.containers': by('name'),
  'PodStatus.resourceClaimStatuses': { strategy: 'merge,retainKeys', mergeKey: 'name' },

  'Container.ports': by('containerPort'),
  'Container.env': by('name'),
  'Container.volumeMounts': by('mountPath'),
  'Container.volumeDevices': by('devicePath'),
  'DeferContainer.ports': by('containerPort'),
  'DeferContainer.env': by('name'),
  'DeferContainer.volumeMounts': by('mountPath'),
  'DeferContainer.volumeDevices': by('devicePath'),
  'EphemeralContainer.ports': by('containerPort'),
  'EphemeralContainer.env': by('name'),
  'EphemeralContainer.volumeMounts': by('mountPath'),
  'EphemeralContainer.volumeDevices': by('devicePath'),
  'ContainerStatus.volumeMounts': by('mountPath'),
  'ContainerStatus.allocatedResourcesStatus': by('name'),

  'ServiceSpec.ports': by('port'),
  'ServiceStatus.conditions': by('type'),
  'ServiceAccount.secrets': by('name'),
  'NodeSpec.podCIDRs': { strategy: 'merge' },
  'NodeStatus.conditions': by('type'),
  'NodeStatus.addresses': by('type'),
  'NamespaceStatus.conditions': by('type'),
};

/** The name of the object type of a field, or of the elements of a list; undefined for other fields. */
function objectType(shape: Shape): string | undefined {
  if (typeof shape !== 'object' || 'map' in shape) return undefined;
  return 'ref' in shape ? shape.ref : objectType(shape.array);
}

const lookups = new Map<string, StrategyLookup>();

/** Returns the lookup of the strategies for a type in the generated schema. For an unknown type, the lookup finds no field. */
export function strategyFor(typeName: string): StrategyLookup {
  const existing = lookups.get(typeName);
  if (existing !== undefined) return existing;
  const fields = new Map<string, FieldStrategy>();
  const lookup: StrategyLookup = (name) => {
    const known = fields.get(name);
    if (known !== undefined) return known;
    const type = schemaTypes[typeName];
    if (type === undefined || !Object.hasOwn(type, name)) return undefined;
    const inner = objectType(type[name]?.shape ?? 'any');
    const strategy: FieldStrategy = {
      ...patchStrategies[`${typeName}.${name}`],
      fields: inner === undefined ? undefined : strategyFor(inner),
    };
    fields.set(name, strategy);
    return strategy;
  };
  lookups.set(typeName, lookup);
  return lookup;
}

/**
 * The evaluators of Pods, Services, claims, and all other resources, whose objects are counted.
 * Source: pkg/quota/v1/evaluator/core and k8s.io/apiserver/pkg/quota/v1/generic of v1.33 (behavior).
 */
import type { KubeObject } from '../../../../../machinery/meta.ts';
import { maxQuantity } from '../../../../../machinery/quantity.ts';
import type { PersistentVolumeClaim, Service } from '../../../../generated/types.ts';
import type { KindDefinition } from '../../../../kind.ts';
import { resourceQuantity } from '../../pod/resources.ts';
import { countName, type Evaluator, quantityOf, type Usage } from './evaluator.ts';
import { podEvaluator } from './pod-usage.ts';

/**
 * Whether quotas count the objects of the kind. As in upstream, Events are not counted. Objects that outlive their namespace, which
 * upstream does not have, are not counted either.
 */
export const isCountable = ({ kind, namespaced, createOnly, computed, outlivesNamespace }: KindDefinition): boolean =>
  namespaced && kind !== 'Event' && outlivesNamespace !== true && createOnly === undefined && computed === undefined;

const serviceNames = new Set(['services', 'services.nodeports', 'services.loadbalancers', 'count/services']);

const serviceEvaluator: Evaluator<Service> = {
  measures: (name) => serviceNames.has(name),
  usage: (service) =>
    new Map([
      ['count/services', quantityOf(1)],
      ['services', quantityOf(1)],
      ['services.nodeports', quantityOf(nodePorts(service))],
      ['services.loadbalancers', quantityOf(service.spec?.type === 'LoadBalancer' ? 1 : 0)],
    ]),
  chargesUpdates: true,
};

function nodePorts({ spec }: Service): number {
  const { type, ports = [], allocateLoadBalancerNodePorts } = spec ?? {};
  if (type !== 'NodePort' && type !== 'LoadBalancer') return 0;
  if (type === 'LoadBalancer' && allocateLoadBalancerNodePorts === false)
    return ports.filter(({ nodePort }) => (nodePort ?? 0) !== 0).length;
  return ports.length;
}

const claimNames = ['count/persistentvolumeclaims', 'persistentvolumeclaims', 'requests.storage'];
const OF_CLASS = '.storageclass.storage.k8s.io/';
/** The annotation that named the class of a claim before the field storageClassName existed. */
const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

const claimEvaluator: Evaluator<PersistentVolumeClaim> = {
  measures: (name) => claimNames.some((own) => name === own || name.endsWith(`${OF_CLASS}${own}`)),
  usage(claim) {
    const usage: Usage = new Map([
      ['count/persistentvolumeclaims', quantityOf(1)],
      ['persistentvolumeclaims', quantityOf(1)],
    ]);
    const requested = resourceQuantity(claim.spec?.resources?.requests, 'storage');
    const allocated = resourceQuantity(claim.status?.allocatedResources, 'storage');
    if (requested !== undefined)
      usage.set('requests.storage', allocated === undefined ? requested : maxQuantity(requested, allocated));
    const ofClass = claim.metadata.annotations?.[CLASS_ANNOTATION] ?? claim.spec?.storageClassName ?? '';
    if (ofClass === '') return usage;
    for (const name of ['persistentvolumeclaims', 'requests.storage']) {
      const amount = usage.get(name);
      if (amount !== undefined) usage.set(`${ofClass}${OF_CLASS}${name}`, amount);
    }
    return usage;
  },
  chargesUpdates: true,
};

/** The resources that quotas can also name without the prefix `count/`. */
const aliased = new Set(['configmaps', 'secrets', 'replicationcontrollers', 'resourcequotas']);

const evaluators = new Map<string, Evaluator>([
  ['/pods', podEvaluator as unknown as Evaluator],
  ['/services', serviceEvaluator as unknown as Evaluator],
  ['/persistentvolumeclaims', claimEvaluator as unknown as Evaluator],
]);

export function evaluatorOf(group: string, resource: string): Evaluator {
  const key = `${group}/${resource}`;
  let evaluator = evaluators.get(key);
  if (evaluator === undefined) {
    evaluator = objectCounter(group, resource);
    evaluators.set(key, evaluator);
  }
  return evaluator;
}

function objectCounter(group: string, resource: string): Evaluator<KubeObject> {
  const names = [countName(group, resource), ...(group === '' && aliased.has(resource) ? [resource] : [])];
  return {
    measures: (name) => names.includes(name),
    usage: () => new Map(names.map((name) => [name, quantityOf(1)])),
  };
}

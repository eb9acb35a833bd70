/** The names that types have in upstream's OpenAPI documents. */

const META = new Set([
  'Condition',
  'DeleteOptions',
  'LabelSelector',
  'LabelSelectorRequirement',
  'ListMeta',
  'ManagedFieldsEntry',
  'ObjectMeta',
  'OwnerReference',
  'Preconditions',
  'ShardInfo',
  'Status',
  'StatusCause',
  'StatusDetails',
]);
const COORDINATION = new Set(['Lease', 'LeaseSpec']);
const AUTHENTICATION = new Set(['BoundObjectReference', 'TokenRequestSpec', 'TokenRequestStatus']);
const METRICS = new Set(['ContainerMetrics', 'NodeMetrics', 'PodMetrics']);
/** Of lifepod's own group. */
const LIFEPOD = new Set(['DeferControl', 'PodRecord', 'PodTransition']);
/** Names that more than one group uses bear their group in the field table. */
const GROUP_PREFIX = /^(Core|Events|Authentication)V1(?=[A-Z])/;

export const META_PREFIX = 'io.k8s.apimachinery.pkg.apis.meta.v1';

/** `Pod` of the field table is `io.k8s.api.core.v1.Pod`. */
export function componentName(type: string): string {
  const prefix = GROUP_PREFIX.exec(type);
  const short = prefix === null ? type : type.slice(prefix[0].length);
  if (prefix !== null) return `io.k8s.api.${String(prefix[1]).toLowerCase()}.v1.${short}`;
  if (META.has(type)) return `${META_PREFIX}.${type}`;
  if (METRICS.has(type)) return `io.k8s.metrics.pkg.apis.metrics.v1beta1.${type}`;
  if (LIFEPOD.has(type)) return `io.lifepod.v1.${type}`;
  if (COORDINATION.has(type)) return `io.k8s.api.coordination.v1.${type}`;
  if (AUTHENTICATION.has(type)) return `io.k8s.api.authentication.v1.${type}`;
  return `io.k8s.api.core.v1.${type}`;
}

/** Types that are written as a string (or a number), by the shape that the field table has for them. */
export const SCALAR_COMPONENTS: Readonly<Record<string, { name: string; schema: Record<string, unknown> }>> = {
  time: {
    name: `${META_PREFIX}.Time`,
    schema: { type: 'string', format: 'date-time', description: 'A time as RFC 3339 writes it, in whole seconds.' },
  },
  microtime: {
    name: `${META_PREFIX}.MicroTime`,
    schema: { type: 'string', format: 'date-time', description: 'A time as RFC 3339 writes it, in microseconds.' },
  },
  quantity: {
    name: 'io.k8s.apimachinery.pkg.api.resource.Quantity',
    schema: {
      oneOf: [{ type: 'string' }, { type: 'number' }],
      description: 'An amount of a resource: a number with an optional suffix, such as 500m, 1.5 or 128Mi.',
    },
  },
  intOrString: {
    name: 'io.k8s.apimachinery.pkg.util.intstr.IntOrString',
    schema: {
      oneOf: [{ type: 'integer' }, { type: 'string' }],
      format: 'int-or-string',
      description: 'An integer or a string, such as a port by number or by name.',
    },
  },
};

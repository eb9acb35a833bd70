/** Maps types of the generated field table to their names in upstream's OpenAPI documents. */

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
/** The types of the API group lifepod.io. */
const LIFEPOD = new Set(['DeferControl', 'PodRecord', 'PodTransition']);
/**
 * In the field table, the name of a type that exists in several API groups begins with the group and the version, as in
 * CoreV1Event.
 */
const GROUP_PREFIX = /^(Core|Events|Authentication)V1(?=[A-Z])/;

export const META_PREFIX = 'io.k8s.apimachinery.pkg.apis.meta.v1';

/** Returns the OpenAPI name of a type of the field table, for example `io.k8s.api.core.v1.Pod` for `Pod`. */
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

/** The types that JSON represents as a string or a number, by their shape in the field table. */
export const SCALAR_COMPONENTS: Readonly<Record<string, { name: string; schema: Record<string, unknown> }>> = {
  time: {
    name: `${META_PREFIX}.Time`,
    schema: { type: 'string', format: 'date-time', description: 'A time in RFC 3339 format, in whole seconds.' },
  },
  microtime: {
    name: `${META_PREFIX}.MicroTime`,
    schema: { type: 'string', format: 'date-time', description: 'A time in RFC 3339 format, with microseconds.' },
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

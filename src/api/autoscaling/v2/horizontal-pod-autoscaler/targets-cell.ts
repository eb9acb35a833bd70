/** The cell with the current values and the targets of the metrics. Source: pkg/printers of v1.33 (behavior). */
import type { V2HorizontalPodAutoscaler, V2MetricTarget, V2MetricValueStatus } from '../../../generated/types.ts';

const MAX_SHOWN = 2;
const UNKNOWN = '<unknown>';

interface Metric {
  type: string;
  /** The name of the resource; undefined for metrics that do not measure a resource. */
  name: string | undefined;
  target: V2MetricTarget;
  current: V2MetricValueStatus | undefined;
}

const percent = (value: number | undefined): string | undefined => (value === undefined ? undefined : `${value}%`);

function textOf({ type, name, target, current }: Metric): string {
  if (name !== undefined) {
    const shown =
      target.averageValue === undefined
        ? `${percent(current?.averageUtilization) ?? UNKNOWN}/${percent(target.averageUtilization) ?? '<auto>'}`
        : `${current?.averageValue ?? UNKNOWN}/${target.averageValue}`;
    return `${name}: ${shown}`;
  }
  if (target.averageValue === undefined) return `${current?.value ?? UNKNOWN}/${target.value ?? UNKNOWN}`;
  return `${current?.averageValue ?? UNKNOWN}/${target.averageValue}${type === 'Pods' ? '' : ' (avg)'}`;
}

/** Returns a text such as `cpu: 40%/80%, 10/20 + 1 more...`. */
export function targetsCell({ spec, status }: V2HorizontalPodAutoscaler): string {
  const metrics = spec?.metrics ?? [];
  if (metrics.length === 0) return '<none>';
  const texts = metrics.slice(0, MAX_SHOWN).map((metric, index) => {
    const field = { Object: 'object', Pods: 'pods', External: 'external' } as const;
    const ofResource = { Resource: 'resource', ContainerResource: 'containerResource' } as const;
    const name = { ...field, ...ofResource }[metric.type];
    const source = name === undefined ? undefined : metric[name];
    if (name === undefined || source === undefined) return '<unknown type>';
    const current = status?.currentMetrics?.[index]?.[name]?.current;
    return textOf({
      type: metric.type,
      name: 'name' in source ? source.name : undefined,
      target: source.target,
      current,
    });
  });
  const more = metrics.length - MAX_SHOWN;
  return texts.join(', ') + (more > 0 ? ` + ${more} more...` : '');
}

/**
 * The IngressClass: names the controller that implements the Ingresses of the class.
 * Source: pkg/registry/networking/ingressclass, pkg/apis/networking and pkg/printers of v1.33.
 */
import { kind } from '../../../declaration.ts';
import type { IngressClass } from '../../../generated/types.ts';
import { countGeneration, startGeneration } from '../../../generation.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';
import { validateIngressClass } from './validation.ts';

/** With the value "true", this annotation marks a class as the default for Ingresses without a class. */
const DEFAULT_CLASS = 'ingressclass.kubernetes.io/is-default-class';

const isDefaultClass = ({ metadata }: IngressClass): boolean => metadata.annotations?.[DEFAULT_CLASS] === 'true';

/**
 * Returns the name of the newest class that is marked as default or, among equally new ones, the name that sorts first; undefined if no
 * class is marked.
 */
export function defaultIngressClass(classes: readonly IngressClass[]): string | undefined {
  let best: IngressClass | undefined;
  for (const each of classes) if (isDefaultClass(each) && (best === undefined || precedes(each, best))) best = each;
  return best?.metadata.name;
}

function precedes({ metadata: a }: IngressClass, { metadata: b }: IngressClass): boolean {
  const [madeA, madeB] = [a.creationTimestamp ?? '', b.creationTimestamp ?? ''];
  return madeA === madeB ? a.name < b.name : madeA > madeB;
}

function parametersCell({ spec }: IngressClass): string {
  const { kind: parametersKind, apiGroup, name } = spec?.parameters ?? {};
  if (parametersKind === undefined) return '<none>';
  return `${parametersKind}${apiGroup === undefined ? '' : `.${apiGroup}`}/${name}`;
}

export const ingressClassKind = kind<IngressClass>('networking.k8s.io/v1', 'IngressClass', {
  scope: 'Cluster',
  defaults(ingressClass) {
    ingressClass.spec ??= {};
    if (ingressClass.spec.parameters !== undefined) ingressClass.spec.parameters.scope ??= 'Cluster';
  },
  prepareForCreate: startGeneration,
  prepareForUpdate: (ingressClass, old) => countGeneration(ingressClass, old, [ingressClass.spec, old.spec]),
  rules: [validateIngressClass],
  columns: [
    nameColumn,
    column(
      'Controller',
      'The controller that implements the Ingresses of the class.',
      ({ spec }) => spec?.controller ?? '',
    ),
    column('Parameters', 'The object with more settings for the controller.', parametersCell),
    ageColumn,
  ],
});

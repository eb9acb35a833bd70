/**
 * Rules and columns that the kinds with a selector and a template for Pods share.
 * Source: pkg/apis/apps/validation and pkg/printers of v1.33 (behavior and wording).
 */
import { type FieldError, forbidden, invalid, notSupported, required } from '../../../machinery/field-error.ts';
import { labelSelectorErrors, labelSelectorMatcher } from '../../../machinery/labels.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { containersCell } from '../../core/v1/pod-template/template.ts';
import type { LabelSelector, PodTemplateSpec } from '../../generated/types.ts';
import { type CellColumn, column, selectorCell, selectorText } from '../../table.ts';

const SELECTOR = 'spec.selector';

const isEmptySelector = ({ matchLabels = {}, matchExpressions = [] }: LabelSelector): boolean =>
  Object.keys(matchLabels).length + matchExpressions.length === 0;

/** `kind`: the kind in lower case, as in `daemonset`. */
export const validateNotEmpty = (selector: LabelSelector | undefined, kind: string): FieldError[] =>
  selector !== undefined && isEmptySelector(selector)
    ? [invalid(SELECTOR, selector, `empty selector is invalid for ${kind}`)]
    : [];

/** `kind`: the kind in lower case, as in `deployment`. */
export const validateRequiredSelector = (selector: LabelSelector | undefined, kind: string): FieldError[] =>
  selector === undefined
    ? [required(SELECTOR)]
    : [...labelSelectorErrors(selector, SELECTOR), ...validateNotEmpty(selector, kind)];

/** An invalid selector is not compared, because another rule reports it. */
export function validateTemplateLabels(
  selector: LabelSelector | undefined,
  template: PodTemplateSpec | undefined,
): FieldError[] {
  const labels = template?.metadata?.labels ?? {};
  if (labelSelectorErrors(selector, '').length > 0 || labelSelectorMatcher(selector)(labels)) return [];
  return [invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`')];
}

/** `kind`: the kind that has the template, such as `DaemonSet`. */
export function validateLastingTemplate(template: PodTemplateSpec | undefined, kind: string): FieldError[] {
  const { restartPolicy, activeDeadlineSeconds } = template?.spec ?? {};
  const path = 'spec.template.spec';
  return [
    ...(restartPolicy === 'Always' ? [] : [notSupported(`${path}.restartPolicy`, restartPolicy ?? '', ['Always'])]),
    ...(activeDeadlineSeconds === undefined
      ? []
      : [forbidden(`${path}.activeDeadlineSeconds`, `activeDeadlineSeconds in ${kind} is not Supported`)]),
  ];
}

interface WithCollisions {
  status?: { collisionCount?: number };
}

export function validateCollisions({ status }: WithCollisions, old: WithCollisions | undefined): FieldError[] {
  const [count, oldCount] = [status?.collisionCount, old?.status?.collisionCount];
  const isDecremented = oldCount !== undefined && (count === undefined || count < oldCount);
  return isDecremented ? [invalid('status.collisionCount', count ?? 0, 'cannot be decremented')] : [];
}

interface WithTemplate extends KubeObject {
  spec?: { template?: PodTemplateSpec };
}

interface WithSelector extends KubeObject {
  spec?: { selector?: LabelSelector };
}

export const containerColumns: readonly CellColumn<WithTemplate>[] = [
  column('Containers', 'The names of the app containers.', ({ spec }) => containersCell(spec?.template, 'name'), {
    wide: true,
  }),
  column('Images', 'The images of the app containers.', ({ spec }) => containersCell(spec?.template, 'image'), {
    wide: true,
  }),
];

/** The text of the selector of an object's Pods; empty if the selector is absent or invalid. */
export const selectorOf = ({ spec }: WithSelector): string => selectorText(spec?.selector) ?? '';

export const selectorColumn: CellColumn<WithSelector> = column(
  'Selector',
  'The labels of the Pods of the object.',
  ({ spec }) => selectorCell(spec?.selector),
  { wide: true },
);

interface WithTerminating extends KubeObject {
  status?: { terminatingReplicas?: number };
}

/** Drops the number of terminating replicas, whose feature gate is off in v1.33, unless the old status has one. */
export function dropTerminatingReplicas(object: WithTerminating, old: WithTerminating): void {
  const { status } = object;
  if (status?.terminatingReplicas === undefined || old.status?.terminatingReplicas !== undefined) return;
  const { terminatingReplicas: _, ...kept } = status;
  object.status = kept;
}

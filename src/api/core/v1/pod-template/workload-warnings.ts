/**
 * Warnings about objects from whose template Pods are created.
 * Source: WarningsOnCreate and WarningsOnUpdate of the strategies in pkg/registry/apps and pkg/registry/batch of v1.33 (wording).
 */
import type { KubeObject } from '../../../../machinery/meta.ts';
import { dns1123LabelErrors } from '../../../../machinery/names.ts';
import type { PodTemplateSpec } from '../../../generated/types.ts';
import { templateWarnings } from './template.ts';

interface Workload extends KubeObject {
  spec?: { template?: PodTemplateSpec };
}

export function nameWarnings({ metadata }: KubeObject): string[] {
  const texts = dns1123LabelErrors(metadata.name);
  const advice =
    'metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended';
  return texts.length === 0 ? [] : [`${advice}: [${texts.join(' ')}]`];
}

export const workloadWarnings = (object: Workload, old?: Workload): string[] =>
  object.metadata.generation === old?.metadata.generation
    ? []
    : [
        ...(old === undefined ? nameWarnings(object) : []),
        ...templateWarnings(object.spec?.template, old?.spec?.template, 'spec.template'),
      ];

/** A kind that Kubernetes does not have, in two versions. In v1beta1, the field data.size is an annotation. */
import { kind } from '../api/declaration.ts';
import { oneOf } from '../api/rules.ts';
import { ageColumn, column, nameColumn } from '../api/table.ts';
import type { KubeObject } from '../machinery/meta.ts';

export interface Widget extends KubeObject {
  data?: Record<string, string>;
}

const OBJECT = ['... 0 meta.v1.TypeMeta', 'metadata? 1 meta.v1.ObjectMeta'];

export const widget = kind<Widget>('example.com/v1', 'Widget', {
  shortNames: ['wd'],
  types: { Widget: [...OBJECT, 'data? 2 {}string'] },
  rules: [oneOf('data.color', ['red', 'blue'])],
  columns: [nameColumn, column('Size', 'The size.', ({ data }) => data?.['size'] ?? ''), ageColumn],
});

export const olderWidget = kind<KubeObject>('example.com/v1beta1', 'Widget', {
  shortNames: ['wd'],
  types: { Widget: OBJECT },
  storage: {
    resource: { group: 'example.com', version: 'v1', resource: 'widgets' },
    toStored({ metadata: { annotations: { size = '', ...annotations } = {}, ...metadata } }) {
      return {
        apiVersion: 'example.com/v1',
        kind: 'Widget',
        metadata: { ...metadata, annotations },
        data: { size },
      } as KubeObject;
    },
    fromStored(object) {
      const { metadata, data } = object as Widget;
      const annotations = { ...metadata.annotations, size: data?.['size'] ?? '' };
      return { apiVersion: 'example.com/v1beta1', kind: 'Widget', metadata: { ...metadata, annotations } };
    },
  },
  columns: [nameColumn, ageColumn],
});

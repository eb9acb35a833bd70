/**
 * The Service: a stable address and DNS name for a set of Pods.
 *
 * Boundary: the API server allocates addresses, node ports and IP families after the functions of this folder have validated the
 * Service, and keeps the allocated values if an update omits them.
 * Source: pkg/registry/core/service and pkg/apis/core of v1.33.
 */
import type { Service } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { statusSubresource } from '../../../status-subresource.ts';
import { defaultService } from './defaults.ts';
import { prepareServiceForCreate, prepareServiceForUpdate } from './strategy.ts';
import { serviceColumns, serviceRow } from './table.ts';
import { validateServiceCreate, validateServiceStatusUpdate, validateServiceUpdate } from './validation.ts';

export const serviceKind: KindDefinition<Service> = {
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  singular: 'service',
  shortNames: ['svc'],
  categories: ['all'],
  namespaced: true,
  schema: 'Service',
  returnsDeletedObject: true,
  defaults: defaultService,
  prepareForCreate: prepareServiceForCreate,
  prepareForUpdate: prepareServiceForUpdate,
  validateCreate: validateServiceCreate,
  validateUpdate: validateServiceUpdate,
  subresources: { status: statusSubresource(validateServiceStatusUpdate) },
  selectableFields: ({ spec }) => ({ 'spec.clusterIP': spec?.clusterIP ?? '', 'spec.type': spec?.type ?? '' }),
  columns: serviceColumns,
  row: serviceRow,
};

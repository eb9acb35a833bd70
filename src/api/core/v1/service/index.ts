/**
 * The Service: a stable address and DNS name for a set of Pods.
 *
 * Boundary: the API server allocates addresses, node ports and IP families after the functions of this folder have validated the
 * Service, and keeps the allocated values if an update omits them.
 * Source: pkg/registry/core/service and pkg/apis/core of v1.33.
 */
import { dns1035LabelErrors } from '../../../../machinery/names.ts';
import { kind } from '../../../declaration.ts';
import type { Service } from '../../../generated/types.ts';
import { onUpdate } from '../../../rules.ts';
import { defaultService } from './defaults.ts';
import { prepareServiceForCreate, prepareServiceForUpdate } from './strategy.ts';
import { serviceColumns } from './table.ts';
import { validateClusterIpsUpdate } from './validate-cluster-ips.ts';
import { validateService, validateServiceStatus } from './validation.ts';

export const serviceKind = kind<Service>('v1', 'Service', {
  shortNames: ['svc'],
  categories: ['all'],
  names: dns1035LabelErrors,
  returnsDeletedObject: true,
  defaults: defaultService,
  status: { initial: () => ({ loadBalancer: {} }), rules: [validateServiceStatus] },
  prepareForCreate: prepareServiceForCreate,
  prepareForUpdate: prepareServiceForUpdate,
  rules: [
    onUpdate(({ spec = {} }, { spec: oldSpec = {} }) => validateClusterIpsUpdate(spec, oldSpec)),
    validateService,
  ],
  selectableFields: ({ spec }) => ({ 'spec.clusterIP': spec?.clusterIP ?? '', 'spec.type': spec?.type ?? '' }),
  columns: serviceColumns,
});

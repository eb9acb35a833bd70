/**
 * The Service: a stable address and DNS name for a set of Pods.
 *
 * Boundary: the API server allocates addresses, node ports and IP families (apiserver/admission/services) after the functions of this
 * folder have validated the Service.
 * Source: pkg/registry/core/service and pkg/apis/core of v1.33.
 */
import { dns1035LabelErrors } from '../../../../machinery/names.ts';
import { kind } from '../../../declaration.ts';
import type { Service } from '../../../generated/types.ts';
import { defaultIpModes, defaultService } from './defaults.ts';
import { prepareServiceForCreate, prepareServiceForUpdate } from './strategy.ts';
import { serviceColumns } from './table.ts';
import { validateServiceStatus } from './validate-load-balancer.ts';
import { validateService } from './validation.ts';
import { serviceWarnings } from './warnings.ts';

export const serviceKind = kind<Service>('v1', 'Service', {
  shortNames: ['svc'],
  categories: ['all'],
  names: dns1035LabelErrors,
  returnsDeletedObject: true,
  defaults: defaultService,
  status: { initial: () => ({ loadBalancer: {} }), rules: [validateServiceStatus], prepare: defaultIpModes },
  prepareForCreate: prepareServiceForCreate,
  prepareForUpdate: prepareServiceForUpdate,
  rules: [validateService],
  subresources: {
    proxy: {
      verbs: ['get', 'create', 'update', 'patch', 'delete'],
      operation: 'proxyToService',
      connects: 'ServiceProxyOptions',
      subpaths: true,
    },
  },
  warnings: serviceWarnings,
  selectableFields: ({ spec }) => ({ 'spec.clusterIP': spec?.clusterIP ?? '', 'spec.type': spec?.type ?? '' }),
  columns: serviceColumns,
});

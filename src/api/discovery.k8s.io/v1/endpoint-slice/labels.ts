/** Labels of EndpointSlices, and the values that the controllers give them. Source: k8s.io/api/discovery/v1 of v1.33. */

/** The name of the Service to whose endpoints the slice belongs. */
export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';
/** The component that writes the slice. */
export const MANAGED_BY_LABEL = 'endpointslice.kubernetes.io/managed-by';
/** The controller that writes the slices of Services with a selector. */
export const SLICE_CONTROLLER = 'endpointslice-controller.k8s.io';
/** The controller that copies Endpoints that were not written by a controller. */
export const MIRRORING_CONTROLLER = 'endpointslicemirroring-controller.k8s.io';
/** With the value `true` in Endpoints: no slices are copied from them. */
export const SKIP_MIRROR_LABEL = 'endpointslice.kubernetes.io/skip-mirror';

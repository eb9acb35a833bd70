/** Source: k8s.io/api/discovery/v1 of v1.33. */

/** The label with the name of the Service to whose endpoints the slice belongs. */
export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';
/** The label with the name of the component that writes the slice. */
export const MANAGED_BY_LABEL = 'endpointslice.kubernetes.io/managed-by';
/** The value of MANAGED_BY_LABEL for the controller that writes the slices of Services with a selector. */
export const SLICE_CONTROLLER = 'endpointslice-controller.k8s.io';
/** The value of MANAGED_BY_LABEL for the controller that copies Endpoints to slices if no controller wrote the Endpoints. */
export const MIRRORING_CONTROLLER = 'endpointslicemirroring-controller.k8s.io';
/** The label of Endpoints that, with the value `true`, prevents their copying to slices. */
export const SKIP_MIRROR_LABEL = 'endpointslice.kubernetes.io/skip-mirror';

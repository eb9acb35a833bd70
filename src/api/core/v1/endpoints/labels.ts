/** Labels and annotations of Endpoints. Source: v1.33. */

/** The label that names the controller that writes the Endpoints. */
export const ENDPOINTS_MANAGED_BY = 'endpoints.kubernetes.io/managed-by';
/** Its value in the Endpoints of Services with a selector. */
export const ENDPOINTS_CONTROLLER = 'endpoint-controller';

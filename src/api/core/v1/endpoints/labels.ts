/** The label that names the controller that writes the Endpoints. Source: v1.33. */
export const ENDPOINTS_MANAGED_BY = 'endpoints.kubernetes.io/managed-by';
/** The value of ENDPOINTS_MANAGED_BY in the Endpoints of Services with a selector. */
export const ENDPOINTS_CONTROLLER = 'endpoint-controller';

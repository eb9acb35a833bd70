/**
 * Limits the number of rules for one Service, because it grows with the product of its ports, addresses and endpoints. Upstream has no such
 * limit; its largest tested Services have some thousand endpoints.
 */

/** The maximum number of pairs of an address and a port. Further pairs are left out. */
export const MAX_FRONTENDS = 10_000;
/** The maximum number of pairs of a frontend and an endpoint. */
export const MAX_PAIRS = 100_000;
/** The maximum number of endpoints that are read from slices. An endpoint counts once for each port. */
const MAX_READ = 200_000;

/** The number of elements or endpoints that one step visits. */
export const STEP_LENGTH = 1000;

/**
 * Returns how many endpoints each port of a Service gets, and how many are read for it. `frontends`: the number of frontends of the port.
 */
export const endpointLimits = (ports: number, frontends: number): { used: number; read: number } => {
  const share = (total: number): number => Math.max(1, Math.floor(total / Math.max(1, ports)));
  return { used: Math.max(1, Math.floor(share(MAX_PAIRS) / Math.max(1, frontends))), read: share(MAX_READ) };
};

/** The options that every controller takes, the names of the controllers, and a constant that two controllers share. */
import type { Client } from '../client/client.ts';
import type { Log, Timers } from '../platform/platform.ts';

/**
 * A timer that fires at least this late shows that the machine was suspended. The node's state in the API may then still be
 * the state from before the suspension.
 */
export const SUSPENDED_MILLIS = 10_000;

export interface ControllerOptions {
  client: Client;
  timers: Timers;
  log: Log;
  /** Stops the controller. */
  signal: AbortSignal;
}

/**
 * The names of the controllers as users of the API. Source: the ServiceAccounts of upstream's controllers. Upstream has no controllers for
 * Events, PodRecords and system objects.
 */
export type ControllerName =
  | 'event-ttl-controller'
  | 'namespace-controller'
  | 'node-controller'
  | 'persistent-volume-binder'
  | 'pod-garbage-collector'
  | 'pod-record-controller'
  | 'root-ca-cert-publisher'
  | 'service-account-controller'
  | 'system-object-controller'
  | 'taint-eviction-controller'
  | 'unbound-record-controller';

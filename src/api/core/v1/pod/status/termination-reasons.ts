/** The reasons for the termination of a Pod. Source: the specification of defer containers, "When the list runs". */
export const terminationReasons = [
  'Deleted',
  'ScaledDown',
  'Replaced',
  'OwnerDeleted',
  'Evicted',
  'Preempted',
  'DeadlineExceeded',
  'NodeShutdown',
  'NodePressure',
  'Completed',
] as const;
export type TerminationReason = (typeof terminationReasons)[number];

/** The names of types in TYPE/NAME. This module is separate from workloads.ts because every command loads it to explain usage errors. */

/** The names of each type of workload that kubectl accepts, the usual one first. */
export const WORKLOAD_NAMES = {
  Deployment: ['deployment', 'deployments', 'deploy'],
  StatefulSet: ['statefulset', 'statefulsets', 'sts'],
  DaemonSet: ['daemonset', 'daemonsets', 'ds'],
  ReplicaSet: ['replicaset', 'replicasets', 'rs'],
  ReplicationController: ['replicationcontroller', 'replicationcontrollers', 'rc'],
  Job: ['job', 'jobs'],
  CronJob: ['cronjob', 'cronjobs', 'cj'],
} as const;

export const isPodType = (word: string): boolean => /^(pods?|po)$/i.test(word);

/** Returns the kind of workload for its name in kubectl, with or without the group, such as deployment.apps. */
export const workloadKind = (word: string): string | undefined => {
  const name = word.toLowerCase().split('.')[0] ?? '';
  return Object.entries(WORKLOAD_NAMES).find(([, names]) => (names as readonly string[]).includes(name))?.[0];
};

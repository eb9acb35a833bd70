/** ClusterRoles that only lifepod has. Upstream's roles remain unchanged. */

const EVENTS = 'create,patch,update events in core,events.k8s.io';

/** Rules (see rule-text.ts) of controllers that upstream does not have or runs as a part of its API server, by name. */
export const ownControllerRoleTexts: Readonly<Record<string, readonly string[]>> = {
  'event-ttl-controller': ['delete events'],
  'ipallocator-repair-controller': ['get services', 'create,delete,get ipaddresses in networking.k8s.io', EVENTS],
  'network-policy-controller': [
    'list,watch namespaces,pods',
    'list,watch networkpolicies in networking.k8s.io',
    EVENTS,
  ],
  'pod-record-controller': ['delete,list,watch podrecords in lifepod.io'],
  'unbound-record-controller': ['create podrecords in lifepod.io'],
};

interface OwnRole {
  rules: readonly string[];
  /** ServiceAccounts in kube-system. */
  accounts: readonly string[];
}

export const ownRoles: Readonly<Record<string, OwnRole>> = {
  // Before these controllers delete a Pod with defer containers, they write the reason for the deletion to the status of the Pod.
  'system:lifepod:deletion-reasons': {
    rules: ['patch pods/status'],
    accounts: [
      'daemon-set-controller',
      'job-controller',
      'namespace-controller',
      'replicaset-controller',
      'replication-controller',
      'statefulset-controller',
    ],
  },
  // The controller watches the objects that remain in a namespace instead of listing them again, and patches the conditions of the
  // namespace.
  'system:lifepod:namespace-controller': {
    rules: ['watch * in *', 'patch namespaces/status'],
    accounts: ['namespace-controller'],
  },
  // The controller also handles ephemeral volumes, and creates the StorageClass local-path.
  'system:lifepod:persistent-volume-binder': {
    rules: ['create,delete persistentvolumeclaims', 'create storageclasses in storage.k8s.io'],
    accounts: ['persistent-volume-binder'],
  },
  'system:lifepod:resourcequota-controller': { rules: ['get resourcequotas'], accounts: ['resourcequota-controller'] },
  // Upstream's CoreDNS comes with a role of its own, which contains these rules and others.
  'system:lifepod:kube-dns': {
    rules: ['list,watch namespaces', 'list,watch endpointslices in discovery.k8s.io'],
    accounts: ['kube-dns'],
  },
};

/** Rules that lifepod adds to upstream's aggregated roles, by the name of the aggregated role. */
export const ownAggregatedTexts: Readonly<Record<string, readonly string[]>> = {
  // An update of pods/defer ends a defer container of a Pod that is being deleted. Users with the role may delete the Pod by force anyway.
  edit: ['update pods/defer'],
  // A PodRecord contains no more than the status, the Events and the logs of its Pod. In other clusters, the second rule comes with the
  // add-on that serves metrics.
  view: ['read podrecords in lifepod.io', 'read nodes,pods in metrics.k8s.io'],
};

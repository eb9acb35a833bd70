/**
 * The ClusterRoles that only lifepod has: those of its own controllers, and those for requests that upstream's components send only here.
 * Upstream's roles remain unchanged.
 */

const EVENTS = 'create,patch,update events in core,events.k8s.io';

/** The rules of controllers that upstream does not have, or runs as the API server, by the name of the controller. See rule-text.ts. */
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
  /** See rule-text.ts. */
  rules: readonly string[];
  /** The ServiceAccounts in kube-system to which the role is bound. */
  accounts: readonly string[];
}

/** Further roles of upstream's components, by name. */
export const ownRoles: Readonly<Record<string, OwnRole>> = {
  // The status of a Pod with defer containers says why the Pod is deleted, before it is deleted.
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
  // The controller waits for what remains in a namespace instead of asking again, and patches the conditions of the namespace.
  'system:lifepod:namespace-controller': {
    rules: ['watch * in *', 'patch namespaces/status'],
    accounts: ['namespace-controller'],
  },
  // The controller is also that of ephemeral volumes, and provides the class local-path.
  'system:lifepod:persistent-volume-binder': {
    rules: ['create,delete persistentvolumeclaims', 'create storageclasses in storage.k8s.io'],
    accounts: ['persistent-volume-binder'],
  },
  'system:lifepod:resourcequota-controller': { rules: ['get resourcequotas'], accounts: ['resourcequota-controller'] },
  // Upstream's CoreDNS brings a role with these rules, and more.
  'system:lifepod:kube-dns': {
    rules: ['list,watch namespaces', 'list,watch endpointslices in discovery.k8s.io'],
    accounts: ['kube-dns'],
  },
};

/** Rules that upstream's aggregated roles have besides their own, by the name of the aggregated role. */
export const ownAggregatedTexts: Readonly<Record<string, readonly string[]>> = {
  // The subresource ends a container of a Pod that is being deleted. A user with this role can also delete the Pod by force.
  edit: ['update pods/defer'],
  // A record tells no more than the status, the Events and the logs of its Pod. The add-on that serves metrics elsewhere brings the second rule.
  view: ['read podrecords in lifepod.io', 'read nodes,pods in metrics.k8s.io'],
};

/** Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go of v1.33, with the features that are enabled by default. */

const EVENTS = 'create,patch,update events in core,events.k8s.io';
const REVIEW_TOKENS = 'create tokenreviews in authentication.k8s.io';
const REVIEW_ACCESS = 'create subjectaccessreviews in authorization.k8s.io';

const HEALTH = '/healthz,/livez,/readyz,/version,/version/';

/** Rules (see rule-text.ts) by the name of the role. */
export const clusterRoleTexts: Readonly<Record<string, readonly string[]>> = {
  'system:monitoring': ['get /healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*'],
  'system:discovery': [`get /api,/api/*,/apis,/apis/*,/openapi,/openapi/*,${HEALTH}`],
  'system:basic-user': [
    'create selfsubjectaccessreviews,selfsubjectrulesreviews in authorization.k8s.io',
    'create selfsubjectreviews in authentication.k8s.io',
  ],
  'system:public-info-viewer': [`get ${HEALTH}`],
  'system:aggregate-to-admin': [
    'create localsubjectaccessreviews in authorization.k8s.io',
    'read,write rolebindings,roles in rbac.authorization.k8s.io',
  ],
  'system:aggregate-to-edit': [
    'read pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy',
    'impersonate serviceaccounts',
    'write pods,pods/attach,pods/exec,pods/portforward,pods/proxy',
    'create pods/eviction',
    'write configmaps,events,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,secrets,serviceaccounts,services,services/proxy',
    'create serviceaccounts/token',
    'write daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale,statefulsets,statefulsets/scale in apps',
    'write horizontalpodautoscalers in autoscaling',
    'write cronjobs,jobs in batch',
    'write daemonsets,deployments,deployments/rollback,deployments/scale,ingresses,networkpolicies,replicasets,replicasets/scale,replicationcontrollers/scale in extensions',
    'write poddisruptionbudgets in policy',
    'write ingresses,networkpolicies in networking.k8s.io',
    'read,write leases in coordination.k8s.io',
  ],
  'system:aggregate-to-view': [
    'read configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,services/status',
    'read bindings,events,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status,resourcequotas,resourcequotas/status',
    'read namespaces',
    'read endpointslices in discovery.k8s.io',
    'read controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,replicasets,replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,statefulsets/status in apps',
    'read horizontalpodautoscalers,horizontalpodautoscalers/status in autoscaling',
    'read cronjobs,cronjobs/status,jobs,jobs/status in batch',
    'read daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,ingresses,ingresses/status,networkpolicies,replicasets,replicasets/scale,replicasets/status,replicationcontrollers/scale in extensions',
    'read poddisruptionbudgets,poddisruptionbudgets/status in policy',
    'read ingresses,ingresses/status,networkpolicies in networking.k8s.io',
  ],
  'system:heapster': ['read events,namespaces,nodes,pods', 'read deployments in extensions'],
  'system:node': [
    REVIEW_TOKENS,
    'create localsubjectaccessreviews,subjectaccessreviews in authorization.k8s.io',
    'read services',
    'create,read nodes',
    'patch,update nodes/status',
    'patch,update nodes',
    'create,patch,update events',
    'read pods',
    'create,delete pods',
    'patch,update pods/status',
    'create pods/eviction',
    'read configmaps,secrets',
    'get persistentvolumeclaims,persistentvolumes',
    'get endpoints',
    'create,read certificatesigningrequests in certificates.k8s.io',
    'create,delete,get,patch,update leases in coordination.k8s.io',
    'get volumeattachments in storage.k8s.io',
    'create serviceaccounts/token',
    'get,patch,update persistentvolumeclaims/status',
    'read csidrivers in storage.k8s.io',
    'create,delete,get,patch,update csinodes in storage.k8s.io',
    'read runtimeclasses in node.k8s.io',
  ],
  'system:node-problem-detector': ['get nodes', 'patch nodes/status', EVENTS],
  'system:kubelet-api-admin': [
    'read nodes',
    'proxy nodes',
    '* nodes/log,nodes/metrics,nodes/proxy,nodes/stats',
    '* nodes/configz,nodes/healthz,nodes/pods',
  ],
  'system:node-bootstrapper': ['create,read certificatesigningrequests in certificates.k8s.io'],
  'system:auth-delegator': [REVIEW_TOKENS, REVIEW_ACCESS],
  'system:kube-aggregator': ['read endpoints,services'],
  'system:kube-controller-manager': [
    EVENTS,
    'create leases in coordination.k8s.io',
    'get,update leases in coordination.k8s.io named kube-controller-manager',
    'create secrets,serviceaccounts',
    'delete secrets',
    'get configmaps,namespaces,secrets,serviceaccounts',
    'update secrets,serviceaccounts',
    REVIEW_TOKENS,
    REVIEW_ACCESS,
    'list,watch * in *',
    'create serviceaccounts/token',
  ],
  'system:kube-dns': ['list,watch endpoints,services'],
  'system:persistent-volume-provisioner': [
    'create,delete,read persistentvolumes',
    'read,update persistentvolumeclaims',
    'read storageclasses in storage.k8s.io',
    'watch events',
    EVENTS,
  ],
  'system:certificates.k8s.io:certificatesigningrequests:nodeclient': [
    'create certificatesigningrequests/nodeclient in certificates.k8s.io',
  ],
  'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient': [
    'create certificatesigningrequests/selfnodeclient in certificates.k8s.io',
  ],
  'system:volume-scheduler': [
    'patch,read,update persistentvolumes',
    'read storageclasses in storage.k8s.io',
    'patch,read,update persistentvolumeclaims',
  ],
  'system:certificates.k8s.io:legacy-unknown-approver': [
    'approve signers in certificates.k8s.io named kubernetes.io/legacy-unknown',
  ],
  'system:certificates.k8s.io:kubelet-serving-approver': [
    'approve signers in certificates.k8s.io named kubernetes.io/kubelet-serving',
  ],
  'system:certificates.k8s.io:kube-apiserver-client-approver': [
    'approve signers in certificates.k8s.io named kubernetes.io/kube-apiserver-client',
  ],
  'system:certificates.k8s.io:kube-apiserver-client-kubelet-approver': [
    'approve signers in certificates.k8s.io named kubernetes.io/kube-apiserver-client-kubelet',
  ],
  'system:service-account-issuer-discovery': [
    'get /.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,/openid/v1/jwks/',
  ],
  'system:node-proxier': [
    'list,watch endpoints,services',
    'read nodes',
    EVENTS,
    'list,watch servicecidrs in networking.k8s.io',
    'list,watch endpointslices in discovery.k8s.io',
  ],
  'system:kube-scheduler': [
    EVENTS,
    'create leases in coordination.k8s.io',
    'read,update leases in coordination.k8s.io named kube-scheduler',
    'read,write leasecandidates in coordination.k8s.io',
    'read nodes',
    'delete,read pods',
    'create bindings,pods/binding',
    'patch,update pods/status',
    'read replicationcontrollers,services',
    'read replicasets in apps,extensions',
    'read statefulsets in apps',
    'read poddisruptionbudgets in policy',
    'read persistentvolumeclaims,persistentvolumes',
    REVIEW_TOKENS,
    REVIEW_ACCESS,
    'read csinodes in storage.k8s.io',
    'read volumeattachments in storage.k8s.io',
    'read namespaces',
    'read csidrivers in storage.k8s.io',
    'read csistoragecapacities in storage.k8s.io',
  ],
};

/**
 * Each of these roles has the rules of all roles with the label `rbac.authorization.k8s.io/aggregate-to-NAME`, in which NAME is its name.
 */
export const aggregatedRoles = ['admin', 'edit', 'view'] as const;

export const aggregatedTo: Readonly<Record<string, readonly string[]>> = {
  admin: ['edit', 'system:aggregate-to-admin'],
  edit: ['view', 'system:aggregate-to-edit'],
  view: ['system:aggregate-to-view'],
};

const AUTHENTICATED = 'Group system:authenticated';

/** Each ClusterRoleBinding has the name of its role. */
export const clusterRoleSubjects: Readonly<Record<string, readonly string[]>> = {
  'cluster-admin': ['Group system:masters'],
  'system:monitoring': ['Group system:monitoring'],
  'system:discovery': [AUTHENTICATED],
  'system:basic-user': [AUTHENTICATED],
  'system:public-info-viewer': [AUTHENTICATED, 'Group system:unauthenticated'],
  'system:node-proxier': ['User system:kube-proxy'],
  'system:kube-controller-manager': ['User system:kube-controller-manager'],
  'system:kube-dns': ['ServiceAccount kube-system/kube-dns'],
  'system:kube-scheduler': ['User system:kube-scheduler'],
  'system:volume-scheduler': ['User system:kube-scheduler'],
  'system:service-account-issuer-discovery': ['Group system:serviceaccounts'],
  // The Node authorizer decides about the requests of nodes.
  'system:node': [],
};

/** Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/namespace_policy.go of v1.33. */

const EVENTS = 'create,patch,update events in core,events.k8s.io';
const LEADER_ELECTION = [
  'create,read,update leases in coordination.k8s.io',
  'create,read,update leasecandidates in coordination.k8s.io',
];

/** Rules (see rule-text.ts) by the namespace and the name of the role. */
export const roleTexts: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'kube-system': {
    'extension-apiserver-authentication-reader': ['read configmaps named extension-apiserver-authentication'],
    'system:controller:bootstrap-signer': ['read secrets'],
    'system:controller:cloud-provider': ['create,read configmaps'],
    'system:controller:token-cleaner': ['delete,read secrets', EVENTS],
    'system::leader-locking-kube-controller-manager': [
      'watch configmaps',
      'get,update configmaps named kube-controller-manager',
      ...LEADER_ELECTION,
    ],
    'system::leader-locking-kube-scheduler': [
      'watch configmaps',
      'get,update configmaps named kube-scheduler',
      ...LEADER_ELECTION,
    ],
  },
  'kube-public': {
    'system:controller:bootstrap-signer': ['read configmaps', 'update configmaps named cluster-info', EVENTS],
  },
};

interface Bound {
  role: string;
  subjects: readonly string[];
}

export const roleSubjects: Readonly<Record<string, Readonly<Record<string, Bound>>>> = {
  'kube-system': {
    'system::extension-apiserver-authentication-reader': {
      role: 'extension-apiserver-authentication-reader',
      subjects: ['User system:kube-controller-manager', 'User system:kube-scheduler'],
    },
    'system::leader-locking-kube-controller-manager': {
      role: 'system::leader-locking-kube-controller-manager',
      subjects: [
        'User system:kube-controller-manager',
        'ServiceAccount kube-system/kube-controller-manager',
        'ServiceAccount kube-system/leader-election-controller',
      ],
    },
    'system::leader-locking-kube-scheduler': {
      role: 'system::leader-locking-kube-scheduler',
      subjects: ['User system:kube-scheduler', 'ServiceAccount kube-system/kube-scheduler'],
    },
    'system:controller:bootstrap-signer': {
      role: 'system:controller:bootstrap-signer',
      subjects: ['ServiceAccount kube-system/bootstrap-signer'],
    },
    'system:controller:cloud-provider': {
      role: 'system:controller:cloud-provider',
      subjects: ['ServiceAccount kube-system/cloud-provider'],
    },
    'system:controller:token-cleaner': {
      role: 'system:controller:token-cleaner',
      subjects: ['ServiceAccount kube-system/token-cleaner'],
    },
  },
  'kube-public': {
    'system:controller:bootstrap-signer': {
      role: 'system:controller:bootstrap-signer',
      subjects: ['ServiceAccount kube-system/bootstrap-signer'],
    },
  },
};

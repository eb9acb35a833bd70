/** The Pod never runs, because no node has the label that it selects. */
export const podSpec = {
  nodeSelector: { no: 'node' },
  terminationGracePeriodSeconds: 1,
  initContainers: [{ name: 'before', image: 'busybox:1.28', command: ['true'] }],
  containers: [
    {
      name: 'app',
      image: 'busybox:1.28',
      command: ['sleep', '1'],
      ports: [{ containerPort: 80, name: 'web', protocol: 'TCP' }],
      env: [
        { name: 'A', value: 'b' },
        { name: 'C', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      ],
      resources: { requests: { cpu: '1m', memory: '1Mi' }, limits: { memory: '64Mi' } },
      volumeMounts: [{ name: 'work', mountPath: '/work' }],
      readinessProbe: { exec: { command: ['true'] } },
    },
  ],
  deferContainers: [{ name: 'after', image: 'busybox:1.28', command: ['true'], when: 'Always', timeoutSeconds: 2 }],
  volumes: [
    { name: 'work', emptyDir: {} },
    { name: 'settings', configMap: { name: 'one' } },
  ],
  tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 }],
};

const jobSpec = { template: { metadata: { labels: { a: 'b' } }, spec: { ...podSpec, restartPolicy: 'Never' } } };

const workloadSpec = {
  selector: { matchLabels: { a: 'b' } },
  template: { metadata: { labels: { a: 'b' } }, spec: podSpec },
};

/** A PKCS#10 request for CN=jane. */
const REQUEST =
  'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlISk1IRUNBUUF3RHpFTk1Bc0dBMVVFQXd3RWFtRnVaVEJaTUJNR0J5cUdTTTQ5QWdFR0NDcUdTTTQ5QXdFSApBMElBQlBwb0pSRVQzY0V5RnJ3Mng2bGtiZnNMbmRNejlONG9DU0oyazhBMFQraXJwbzBiZDBQSHlKVzZUVVZrCjBOS0krTTZDNDRvRWEvdFB4cXVjNEsxQXk1V2dBREFLQmdncWhrak9QUVFEQWdOSUFEQkZBaUFVck02d0Vxc3MKcUgzTHBxSmgxTnRpczFBdGtQT2lkL3hvM3ZQK3pQRGROd0loQU10Sm9VL2dMYXFVYmh0aUJvck13NFpTTHhFNQpNSjh4dHV3eGk2L0ZnQ3pXCi0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=';

/** By kind or schema, the fields that a valid object needs in addition to its name. */
export const CONTENTS: Readonly<Record<string, object>> = {
  ConfigMap: { data: { a: 'b' }, binaryData: { c: 'ZA==' } },
  Secret: { data: { a: 'Yg==' }, stringData: { c: 'd' }, type: 'Opaque' },
  Pod: { spec: podSpec },
  PodTemplate: { template: { metadata: { labels: { a: 'b' } }, spec: podSpec } },
  Job: { spec: { ...jobSpec, completions: 2, completionMode: 'Indexed', backoffLimitPerIndex: 1 } },
  CronJob: { spec: { schedule: '*/5 * * * *', timeZone: 'Etc/UTC', jobTemplate: { spec: jobSpec } } },
  ControllerRevision: { data: { spec: { template: { $patch: 'replace' } } }, revision: 1 },
  DaemonSet: { spec: workloadSpec },
  Deployment: {
    spec: {
      ...workloadSpec,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '50%', maxUnavailable: 0 } },
    },
  },
  ReplicaSet: { spec: { ...workloadSpec, replicas: 2, minReadySeconds: 1 } },
  ReplicationController: { spec: { ...workloadSpec, selector: { a: 'b' } } },
  StatefulSet: {
    spec: {
      ...workloadSpec,
      serviceName: 'one',
      replicas: 0,
      volumeClaimTemplates: [{ metadata: { name: 'work' }, spec: { storageClassName: 'none' } }],
    },
  },
  ResourceQuota: { spec: { hard: { pods: '4', 'requests.cpu': '1' }, scopes: ['NotTerminating'] } },
  LimitRange: { spec: { limits: [{ type: 'Container', max: { cpu: '1' }, default: { cpu: '500m' } }] } },
  HorizontalPodAutoscaler: {
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'none' },
      maxReplicas: 3,
      metrics: [
        { type: 'Pods', pods: { metric: { name: 'a' }, target: { type: 'AverageValue', averageValue: '1' } } },
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
      ],
      behavior: { scaleDown: { policies: [{ type: 'Pods', value: 1, periodSeconds: 60 }] } },
    },
  },
  'io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler': {
    spec: { scaleTargetRef: { kind: 'Deployment', name: 'none' }, maxReplicas: 3, targetCPUUtilizationPercentage: 50 },
  },
  PodDisruptionBudget: { spec: { minAvailable: '50%', selector: { matchLabels: { a: 'b' } } } },
  Service: { spec: { selector: { a: 'b' }, ports: [{ port: 80, targetPort: 'web' }], clusterIP: 'None' } },
  Endpoints: { subsets: [{ addresses: [{ ip: '10.0.0.1', nodeName: 'none' }], ports: [{ name: 'web', port: 80 }] }] },
  EndpointSlice: {
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true }, hints: { forZones: [{ name: 'a' }] } }],
    ports: [{ name: 'web', port: 80, protocol: 'TCP' }],
  },
  TokenReview: { spec: { token: 'a.b.c', audiences: ['one'] } },
  Binding: { target: { kind: 'Node', name: 'none' } },
  Event: {
    involvedObject: { kind: 'Pod', namespace: 'default', name: 'one' },
    reason: 'A',
    message: 'b',
    type: 'Normal',
  },
  PodRecord: {
    podName: 'one',
    podUID: 'a',
    transitions: [{ key: 'a', at: '2026-01-01T00:00:00.000000Z', type: 'Step' }],
  },
  'io.k8s.api.events.v1.Event': {
    regarding: { kind: 'Pod', namespace: 'default', name: 'one' },
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: 'a/b',
    reportingInstance: 'c',
    action: 'd',
    reason: 'A',
    note: 'b',
    type: 'Normal',
  },
  Lease: { spec: { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.000000Z' } },
  NetworkPolicy: {
    spec: {
      podSelector: { matchLabels: { a: 'b' } },
      ingress: [
        { from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }], ports: [{ port: 80, endPort: 90 }] },
      ],
      egress: [{ to: [{ podSelector: {}, namespaceSelector: {} }], ports: [{ port: 'web', protocol: 'UDP' }] }],
    },
  },
  IngressClass: { spec: { controller: 'a.b/c', parameters: { apiGroup: 'a.b', kind: 'D', name: 'e' } } },
  Ingress: {
    spec: {
      ingressClassName: 'one',
      rules: [
        {
          host: '*.a.b',
          http: {
            paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'one', port: { number: 80 } } } }],
          },
        },
      ],
      tls: [{ hosts: ['a.b'], secretName: 'one' }],
    },
  },
  IPAddress: { spec: { parentRef: { resource: 'services', namespace: 'default', name: 'one' } } },
  CertificateSigningRequest: {
    spec: { request: REQUEST, signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'] },
  },
  ServiceCIDR: { spec: { cidrs: ['10.200.0.0/24', 'fd00::/112'] } },
  RuntimeClass: { handler: 'runc', overhead: { podFixed: { cpu: '1m' } } },
  SubjectAccessReview: {
    spec: {
      user: 'a',
      groups: ['b'],
      extra: { c: ['d'] },
      resourceAttributes: { verb: 'get', resource: 'pods', name: 'e' },
    },
  },
  LocalSubjectAccessReview: {
    spec: { user: 'a', resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'default' } },
  },
  SelfSubjectAccessReview: { spec: { nonResourceAttributes: { verb: 'get', path: '/metrics' } } },
  SelfSubjectRulesReview: { spec: { namespace: 'default' } },
  Role: { rules: [{ apiGroups: [''], resources: ['pods', 'pods/log'], resourceNames: ['one'], verbs: ['get'] }] },
  ClusterRole: {
    rules: [{ nonResourceURLs: ['/metrics', '/a/*'], verbs: ['get'] }],
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
  },
  RoleBinding: {
    roleRef: { kind: 'Role', name: 'one' },
    subjects: [
      { kind: 'User', name: 'none' },
      { kind: 'ServiceAccount', name: 'one' },
    ],
  },
  ClusterRoleBinding: {
    roleRef: { kind: 'ClusterRole', name: 'none' },
    subjects: [{ kind: 'Group', name: 'none' }],
  },
  PriorityClass: { value: 1, description: 'a' },
  StorageClass: { provisioner: 'a/b', volumeBindingMode: 'Immediate' },
  PersistentVolume: {
    spec: { capacity: { storage: '1Mi' }, accessModes: ['ReadWriteOnce'], nfs: { server: 'a', path: '/b' } },
  },
  PersistentVolumeClaim: {
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } }, storageClassName: 'none' },
  },
};

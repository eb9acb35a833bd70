/** The kubectl commands whose requests are recorded, in order: a command may need objects of earlier commands. */

export interface Command {
  args: readonly string[];
  input?: readonly object[];
  /** Whether kubectl can print the object that it sends: with --dry-run=client. */
  prints?: boolean;
  /** For a command that cannot print the object that it sends. */
  sends?: object;
  /** The first minor version of kubectl that has the command and its options; absent: any version. */
  since?: number;
}

const create = (...args: string[]): Command => ({ args: ['create', ...args], prints: true });
const run = (...args: string[]): Command => ({ args });
const withInput = (args: readonly string[], ...input: object[]): Command => ({ args: [...args, '-f', '-'], input });

const object = (apiVersion: string, kind: string, name: string, rest: object = {}): object => ({
  apiVersion,
  kind,
  metadata: { name },
  ...rest,
});
const container = { name: 'main', image: 'busybox:1.36', command: ['sleep', '3600'] };
const pod = (name: string, spec: object = {}): object =>
  object('v1', 'Pod', name, { spec: { containers: [container], ...spec } });

/** kubectl create has no command for these kinds. */
const OBJECTS: readonly object[] = [
  object('v1', 'Node', 'node-1', { spec: { podCIDR: '10.1.0.0/24' } }),
  object('v1', 'PersistentVolume', 'disk', {
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'slow',
      hostPath: { path: '/data', type: 'DirectoryOrCreate' },
    },
  }),
  object('v1', 'PersistentVolumeClaim', 'claim', {
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'slow', resources: { requests: { storage: '500Mi' } } },
  }),
  object('storage.k8s.io/v1', 'StorageClass', 'slow', {
    provisioner: 'example.com/disk',
    parameters: { type: 'slow' },
    reclaimPolicy: 'Retain',
    volumeBindingMode: 'WaitForFirstConsumer',
  }),
  object('node.k8s.io/v1', 'RuntimeClass', 'small', { handler: 'runc', overhead: { podFixed: { memory: '16Mi' } } }),
  object('v1', 'PodTemplate', 'template', {
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [container] } },
  }),
  object('coordination.k8s.io/v1', 'Lease', 'leader', { spec: { holderIdentity: 'one', leaseDurationSeconds: 15 } }),
  pod('full', {
    volumes: [{ name: 'scratch', emptyDir: {} }],
    initContainers: [{ name: 'init', image: 'busybox:1.36', command: ['true'] }],
    tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 0 }],
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 0,
  }),
];

const changed = pod('full', {
  ...(OBJECTS.at(-1) as { spec: object }).spec,
  containers: [{ ...container, image: 'busybox:1.37' }],
});

export const COMMANDS: readonly Command[] = [
  create('namespace', 'demo'),
  create('configmap', 'settings', '--from-literal=a=b', '--from-literal=empty='),
  create('configmap', 'binary', '--from-file=picture'),
  create('secret', 'generic', 'password', '--from-literal=word=geheim', '--type=example.com/word'),
  create(
    'secret',
    'docker-registry',
    'images',
    '--docker-server=r.example',
    '--docker-username=u',
    '--docker-password=p',
  ),
  create('serviceaccount', 'robot'),
  create('service', 'clusterip', 'web', '--tcp=80:8080', '--tcp=443:8443'),
  create('service', 'clusterip', 'headless', '--clusterip=None'),
  create('service', 'nodeport', 'outside', '--tcp=80:http', '--node-port=30080'),
  create('service', 'externalname', 'elsewhere', '--external-name=example.com'),
  create('priorityclass', 'high', '--value=1000', '--preemption-policy=Never', '--description=first'),
  {
    args: ['create', 'token', 'default', '--duration=20m', '--audience=a'],
    since: 24,
    sends: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences: ['a'], expirationSeconds: 1200, boundObjectRef: null },
      status: { token: '', expirationTimestamp: null },
    },
  },
  withInput(['create'], ...OBJECTS.slice(0, 4)),
  withInput(['apply'], ...OBJECTS),
  withInput(['apply'], changed),
  withInput(['apply', '--server-side'], object('v1', 'ConfigMap', 'applied', { data: { a: 'b' } })),
  {
    args: [
      'run',
      'once',
      '--image=busybox:1.36',
      '--restart=Never',
      '--port=80',
      '--env=A=b',
      '--labels=app=once',
      '--',
      'x',
    ],
    prints: true,
  },
  run('expose', 'pod', 'once', '--port=80', '--name=exposed'),
  run('label', 'pod', 'once', 'tier=front'),
  run('annotate', 'pod', 'once', 'example.com/note=a b'),
  run('set', 'image', 'pod/once', 'once=busybox:1.37'),
  run('patch', 'pod', 'once', '-p', '{"spec":{"activeDeadlineSeconds":600}}'),
  run('patch', 'pod', 'once', '--type=merge', '-p', '{"metadata":{"labels":{"tier":null}}}'),
  run('patch', 'pod', 'once', '--type=json', '-p', '[{"op":"add","path":"/metadata/labels/new","value":"1"}]'),
  { args: ['debug', 'pod/once', '--image=busybox:1.36', '-c', 'debugger'], since: 25 },
  run('cordon', 'node-1'),
  run('taint', 'node', 'node-1', 'a=b:NoSchedule'),
  run('uncordon', 'node-1'),
  withInput(['create'], pod('bound', { nodeName: 'node-1' })),
  run('drain', 'node-1', '--force', '--grace-period=0'),
  run('delete', 'configmap', 'settings', 'binary'),
  run('delete', 'secret', '--all', '--cascade=orphan'),
  run('delete', 'pod', 'once', '--now', '--wait=false'),
  run('delete', 'pod', 'full', '--grace-period=0', '--force'),
  run('delete', 'namespace', 'demo', '--wait=false'),
  run('delete', 'priorityclass/high', 'storageclass/slow', 'runtimeclass/small', 'podtemplate/template', 'service/web'),
];

import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import { cpuMillisOf } from '../../../../../machinery/testing.ts';
import type { Container, PodSpec } from '../../../../generated/types.ts';
import { containerOf, defaulted, podOf } from '../pod-fixtures.ts';
import { validatePodCreate } from './validation.ts';

const errorsOf = (spec: Partial<PodSpec>): string[] => validatePodCreate(defaulted(podOf(spec))).map(fieldErrorText);
const app = (more: Partial<Container>): Partial<PodSpec> => ({ containers: [containerOf('app', more)] });
const init = (more: Partial<Container>): Partial<PodSpec> => ({ initContainers: [containerOf('init', more)] });
const label =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const exec = { exec: { command: ['true'] } };

type Case = [Partial<PodSpec>, ...string[]];

it('a long field path is rejected in linear time', () => {
  const fieldPath = "['".repeat(300_000);
  const reject = () => {
    const [error] = errorsOf(app({ env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath } } }] }));
    expect(error).toContain('error converting fieldPath: field label not supported: ');
  };
  expect(cpuMillisOf(reject)).toBeLessThan(1000);
});

const containers: Case[] = [
  [{ containers: [] }, 'spec.containers: Required value'],
  [
    { containers: [{ ...containerOf(''), image: '' }] },
    'spec.containers[0].name: Required value',
    'spec.containers[0].image: Required value',
  ],
  [
    { initContainers: [{ ...containerOf(''), image: undefined }] },
    'spec.initContainers[0].name: Required value',
    'spec.initContainers[0].image: Required value',
  ],
  [{ containers: [containerOf('a'), containerOf('a')] }, 'spec.containers[1].name: Duplicate value: "a"'],
  [{ initContainers: [containerOf('app')] }, 'spec.initContainers[0].name: Duplicate value: "app"'],
  [{ initContainers: [containerOf('i'), containerOf('i')] }, 'spec.initContainers[1].name: Duplicate value: "i"'],
  [{ containers: [containerOf('A_b')] }, `spec.containers[0].name: Invalid value: "A_b": ${label}`],
  [{ containers: [containerOf('a.b')] }, 'spec.containers[0].name: Invalid value: "a.b": must not contain dots'],
  [
    app({ image: ' busybox' }),
    'spec.containers[0].image: Invalid value: " busybox": must not have leading or trailing whitespace',
  ],
  [
    app({ imagePullPolicy: 'Sometimes' }),
    'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"',
  ],
  [
    app({ terminationMessagePolicy: 'x' }),
    'spec.containers[0].terminationMessagePolicy: Unsupported value: "x": supported values: "File", "FallbackToLogsOnError"',
  ],
  [
    app({ restartPolicy: 'Always' }),
    'spec.containers[0].restartPolicy: Forbidden: may not be set for non-init containers',
  ],
  [{ ephemeralContainers: [containerOf('debug')] }, 'spec.ephemeralContainers: Forbidden: cannot be set on create'],
];

const initContainers: Case[] = [
  ...(['livenessProbe', 'readinessProbe', 'startupProbe'] as const).map(
    (field): Case => [
      init({ [field]: exec }),
      `spec.initContainers[0].${field}: Forbidden: may not be set for init containers without restartPolicy=Always`,
    ],
  ),
  [
    init({ lifecycle: { preStop: exec } }),
    'spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always',
  ],
  [
    init({ restartPolicy: 'OnFailure' }),
    'spec.initContainers[0].restartPolicy: Unsupported value: "OnFailure": supported values: "Always"',
  ],
  [
    init({
      restartPolicy: 'Always',
      lifecycle: { preStop: exec },
      readinessProbe: exec,
      livenessProbe: exec,
      startupProbe: exec,
    }),
  ],
  [
    init({ restartPolicy: 'Always', livenessProbe: { ...exec, successThreshold: 2 } }),
    'spec.initContainers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1',
  ],
];

const ports: Case[] = [
  [
    app({ ports: [{ containerPort: 0 }, { containerPort: 65536, hostPort: -1 }] }),
    'spec.containers[0].ports[0].containerPort: Required value',
    'spec.containers[0].ports[1].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive',
    'spec.containers[0].ports[1].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive',
  ],
  [
    app({
      ports: [
        { containerPort: 1, name: 'x' },
        { containerPort: 2, name: 'x' },
      ],
    }),
    'spec.containers[0].ports[1].name: Duplicate value: "x"',
  ],
  [
    app({ ports: [{ containerPort: 1, protocol: 'ICMP' }] }),
    'spec.containers[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
  ],
  [
    {
      containers: [
        containerOf('a', { ports: [{ containerPort: 1, hostPort: 80 }] }),
        containerOf('b', { ports: [{ containerPort: 2, hostPort: 80 }] }),
      ],
    },
    'spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"',
  ],
  [
    { hostNetwork: true, ...app({ ports: [{ containerPort: 1, hostPort: 2 }] }) },
    'spec.containers[0].ports[0].hostPort: Invalid value: 2: must match `containerPort` when `hostNetwork` is true',
  ],
];

const environment: Case[] = [
  [
    app({ env: [{ name: '' }, { name: 'A=B' }, { name: 'my.var-1' }] }),
    'spec.containers[0].env[0].name: Required value',
    'spec.containers[0].env[1].name: Invalid value: "A=B": a valid environment variable name must consist only of printable ASCII characters other than \'=\'',
  ],
  [
    app({ env: [{ name: 'A', valueFrom: {} }] }),
    'spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`',
  ],
  [
    app({ env: [{ name: 'A', value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] }),
    'spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
  ],
  [
    app({ env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.oops' } } }] }),
    'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.oops": error converting fieldPath: field label not supported: spec.oops',
  ],
  [
    app({ env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.labels' } } }] }),
    'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"',
  ],
  [app({ env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: "metadata.labels['a/b']" } } }] })],
  [
    app({ env: [{ name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '2' } } }] }),
    'spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor\'s values 1m and 1 are supported with the cpu resource',
  ],
  [
    app({ env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: '' } } }] }),
    'spec.containers[0].env[0].valueFrom.secretKeyRef.key: Required value',
  ],
  [
    app({ envFrom: [{}] }),
    'spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`',
  ],
  [app({ envFrom: [{ configMapRef: {} }] }), 'spec.containers[0].envFrom[0].configMapRef.name: Required value'],
];

const volumes: Case[] = [
  [
    { volumes: [{ name: '' }, { name: 'a' }, { name: 'a' }] },
    'spec.volumes[0].name: Required value',
    'spec.volumes[2].name: Duplicate value: "a"',
  ],
  [
    { volumes: [{ name: 'a', emptyDir: {}, hostPath: { path: '/x' } }] },
    'spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type',
  ],
  [
    { volumes: [{ name: 'a', emptyDir: { sizeLimit: '-1' } }] },
    'spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity',
  ],
  [
    {
      volumes: [
        { name: 'a', configMap: {} },
        { name: 'b', secret: {} },
      ],
    },
    'spec.volumes[0].configMap.name: Required value',
    'spec.volumes[1].secret.secretName: Required value',
  ],
  [
    {
      volumes: [
        {
          name: 'a',
          secret: {
            secretName: 's',
            defaultMode: 512,
            items: [
              { key: '', path: '/x' },
              { key: 'k', path: '..x' },
            ],
          },
        },
      ],
    },
    'spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive',
    'spec.volumes[0].secret.items[0].key: Required value',
    'spec.volumes[0].secret.items[0].path: Invalid value: "/x": must be a relative path',
    'spec.volumes[0].secret.items[1].path: Invalid value: "..x": must not start with \'..\'',
  ],
  [
    { volumes: [{ name: 'a', hostPath: { path: '/a/../b', type: 'Disk' } }] },
    'spec.volumes[0].hostPath.path: Invalid value: "/a/../b": must not contain \'..\'',
    'spec.volumes[0].hostPath.type: Unsupported value: "Disk": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
  ],
  [
    { volumes: [{ name: 'a', nfs: { server: '', path: 'x' } }] },
    'spec.volumes[0].nfs.server: Required value',
    'spec.volumes[0].nfs.path: Invalid value: "x": must be an absolute path',
  ],
  [
    { volumes: [{ name: 'a', downwardAPI: { items: [{ path: 'x' }] } }] },
    'spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required',
  ],
  [
    {
      serviceAccountName: 's',
      volumes: [
        {
          name: 'a',
          projected: {
            sources: [
              { serviceAccountToken: { path: 't', expirationSeconds: 5 } },
              { secret: { name: 's', items: [{ key: 'k', path: 'p' }] } },
              { configMap: { name: 'c', items: [{ key: 'k', path: 'p' }] }, secret: { name: 's' } },
            ],
          },
        },
      ],
    },
    'spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes',
    'spec.volumes[0].projected: Invalid value: "c": conflicting duplicate paths',
    'spec.volumes[0].projected.sources[2]: Forbidden: may not specify more than 1 volume type per source',
  ],
  [
    { volumes: [{ name: 'a', projected: { sources: [{}, { clusterTrustBundle: { name: 'b', path: 'p' } }] } }] },
    'spec.volumes[0].projected.sources[1].clusterTrustBundle: Forbidden: is not supported',
  ],
  [
    { volumes: [{ name: 'a', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }] },
    'spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set',
  ],
  [
    app({ volumeMounts: [{ name: 'none', mountPath: '' }] }),
    'spec.containers[0].volumeMounts[0].name: Not found: "none"',
    'spec.containers[0].volumeMounts[0].mountPath: Required value',
  ],
  [
    {
      volumes: [{ name: 'a' }],
      ...app({
        volumeMounts: [
          { name: 'a', mountPath: '/x' },
          { name: 'a', mountPath: '/x', subPath: '/y' },
        ],
      }),
    },
    'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/x": must be unique',
    'spec.containers[0].volumeMounts.subPath: Invalid value: "/y": must be a relative path',
  ],
  [
    {
      volumes: [{ name: 'a' }],
      ...app({ volumeMounts: [{ name: 'a', mountPath: '/x', mountPropagation: 'Bidirectional' }] }),
    },
    'spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers',
  ],
];

const resources: Case[] = [
  [
    app({ resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } }),
    'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
  ],
  [
    app({ resources: { limits: { cpu: '-1' } } }),
    'spec.containers[0].resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
  ],
  [
    app({ resources: { requests: { disk: '1' } } }),
    'spec.containers[0].resources.requests[disk]: Invalid value: "disk": must be a standard resource for containers',
  ],
  [
    app({ resources: { requests: { 'example.com/gpu': '1' } } }),
    'spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources',
  ],
  [
    app({ resources: { limits: { 'example.com/gpu': '1500m' } } }),
    'spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "1500m": must be an integer',
    'spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "1500m": must be an integer',
  ],
  [
    app({ resources: { limits: { 'hugepages-2Mi': '2Mi' } } }),
    'spec.containers[0].resources: Forbidden: HugePages require cpu or memory',
  ],
  [
    app({ resources: { limits: { cpu: '1', 'hugepages-2Mi': '3Mi' } } }),
    'spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
    'spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
  ],
  [
    app({ resources: { limits: { cpu: '1', 'hugepages-many': '2Mi' } } }),
    'spec.containers[0].resources.limits[hugepages-many]: Invalid value: "2Mi": 2Mi is not positive integer multiple of hugepages-many',
    'spec.containers[0].resources.requests[hugepages-many]: Invalid value: "2Mi": 2Mi is not positive integer multiple of hugepages-many',
  ],
  [app({ resources: { limits: { memory: '1Gi', 'example.com/gpu': '1' }, requests: { memory: '1Mi' } } })],
];

const probes: Case[] = [
  [app({ livenessProbe: {} }), 'spec.containers[0].livenessProbe: Required value: must specify a handler type'],
  [
    app({ livenessProbe: { ...exec, tcpSocket: { port: 1 } } }),
    'spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type',
  ],
  [app({ readinessProbe: { exec: {} } }), 'spec.containers[0].readinessProbe.exec.command: Required value'],
  [
    app({ readinessProbe: { httpGet: { port: 0, scheme: 'FTP' } } }),
    'spec.containers[0].readinessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive',
    'spec.containers[0].readinessProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"',
  ],
  [
    app({ startupProbe: { ...exec, successThreshold: 2, periodSeconds: -1 } }),
    'spec.containers[0].startupProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0',
    'spec.containers[0].startupProbe.successThreshold: Invalid value: 2: must be 1',
  ],
  [app({ readinessProbe: { ...exec, successThreshold: 2 } })],
  [
    app({ readinessProbe: { ...exec, terminationGracePeriodSeconds: 5 } }),
    'spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes',
  ],
  [
    app({ lifecycle: { postStart: {} } }),
    'spec.containers[0].lifecycle.postStart: Required value: must specify a handler type',
  ],
  [
    app({ lifecycle: { preStop: { sleep: { seconds: 31 } } } }),
    'spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)',
  ],
];

const security: Case[] = [
  [
    app({ securityContext: { runAsUser: -1, procMount: 'x' } }),
    'spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive',
    'spec.containers[0].securityContext.procMount: Unsupported value: "x": supported values: "Default", "Unmasked"',
  ],
  [
    app({ securityContext: { privileged: true, allowPrivilegeEscalation: false } }),
    'spec.containers[0].securityContext: Invalid value: {"privileged":true,"allowPrivilegeEscalation":false}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true',
  ],
  [
    app({ securityContext: { seccompProfile: { type: 'Localhost' } } }),
    'spec.containers[0].securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost',
  ],
  [
    { securityContext: { fsGroup: 2 ** 31, supplementalGroups: [1, -2], fsGroupChangePolicy: 'x' } },
    'spec.securityContext.fsGroup: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive',
    'spec.securityContext.supplementalGroups[1]: Invalid value: -2: must be between 0 and 2147483647, inclusive',
    'spec.securityContext.fsGroupChangePolicy: Unsupported value: "x": supported values: "Always", "OnRootMismatch"',
  ],
  [
    { hostPID: true, shareProcessNamespace: true },
    'spec.securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled',
  ],
  [
    { hostNetwork: true, securityContext: { sysctls: [{ name: 'net.core.somaxconn', value: '1' }] } },
    'spec.securityContext.sysctls[0].name: Invalid value: "net.core.somaxconn": may not be specified when \'hostNetwork\' is true',
  ],
  [
    { securityContext: { appArmorProfile: { type: '' } } },
    'spec.securityContext.appArmorProfile.type: Required value: type is required when appArmorProfile is set',
  ],
  [
    app({ securityContext: { appArmorProfile: { type: 'Some' } } }),
    'spec.containers[0].securityContext.appArmorProfile.type: Unsupported value: "Some": supported values: "Localhost", "RuntimeDefault", "Unconfined"',
  ],
  [
    app({ securityContext: { appArmorProfile: { type: 'RuntimeDefault', localhostProfile: 'p' } } }),
    'spec.containers[0].securityContext.appArmorProfile.localhostProfile: Invalid value: "p": can only be set when AppArmor type is Localhost',
  ],
  [
    app({ securityContext: { appArmorProfile: { type: 'Localhost' } } }),
    'spec.containers[0].securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is Localhost',
  ],
  [
    app({ securityContext: { appArmorProfile: { type: 'Localhost', localhostProfile: ' p' } } }),
    'spec.containers[0].securityContext.appArmorProfile.localhostProfile: Invalid value: " p": must not be padded with whitespace',
  ],
  [
    app({ securityContext: { appArmorProfile: { type: 'Localhost', localhostProfile: 'p'.repeat(4096) } } }),
    'spec.containers[0].securityContext.appArmorProfile.localhostProfile: Too long: may not be more than 4095 bytes',
  ],
  [{ hostUsers: false, hostPID: true }, 'spec.HostPID: Forbidden: when `pod.Spec.HostUsers` is false'],
];

const pod: Case[] = [
  [
    { restartPolicy: 'Sometimes' },
    'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
  ],
  [
    { dnsPolicy: 'x' },
    'spec.dnsPolicy: Unsupported value: "x": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"',
  ],
  [{ dnsPolicy: 'None' }, 'spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None'],
  [
    { dnsPolicy: 'None', dnsConfig: {} },
    'spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None',
  ],
  [
    { dnsConfig: { nameservers: ['1.1.1.1', 'x'], searches: ['.', 'a_b.c.'], options: [{ value: '1' }] } },
    'spec.dnsConfig.nameservers[1]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    'spec.dnsConfig.options[0]: Required value: must not be empty',
  ],
  [
    { activeDeadlineSeconds: 0 },
    'spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive',
  ],
  [
    { hostname: 'A', subdomain: 'b.c' },
    `spec.hostname: Invalid value: "A": ${label}`,
    'spec.subdomain: Invalid value: "b.c": must not contain dots',
  ],
  [
    { hostAliases: [{ ip: 'x' }] },
    'spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
  ],
  [
    { preemptionPolicy: 'x' },
    'spec.preemptionPolicy: Unsupported value: "x": supported values: "PreemptLowerPriority", "Never"',
  ],
  [
    { nodeName: 'n', schedulingGates: [{ name: 'a' }, { name: 'a' }] },
    'spec.schedulingGates[1]: Duplicate value: "a"',
    'spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared',
  ],
  [{ os: { name: 'beos' } }, 'spec.os.name: Unsupported value: "beos": supported values: "linux", "windows"'],
];

const placement: Case[] = [
  [
    { tolerations: [{ value: 'x' }] },
    'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty, which means "match all values and all keys"',
  ],
  [
    { tolerations: [{ key: 'a', operator: 'Exists', value: 'x', effect: 'NoSchedule', tolerationSeconds: 1 }] },
    'spec.tolerations[0].effect: Invalid value: "NoSchedule": effect must be \'NoExecute\' when `tolerationSeconds` is set',
    'spec.tolerations[0].operator: Invalid value: "x": value must be empty when `operator` is \'Exists\'',
  ],
  [
    { tolerations: [{ key: 'a', operator: 'In', effect: 'Never' }] },
    'spec.tolerations[0].operator: Unsupported value: "In": supported values: "Equal", "Exists"',
    'spec.tolerations[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
  ],
  [
    { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } } },
    'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term',
  ],
  [
    {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  { key: 'a', operator: 'In' },
                  { key: 'a', operator: 'Is' },
                ],
              },
            ],
          },
        },
      },
    },
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
    'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1].operator: Invalid value: "Is": not a valid selector operator',
  ],
  [
    {
      affinity: {
        podAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 0, podAffinityTerm: { topologyKey: 'zone' } }],
        },
      },
    },
    'spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100',
  ],
  [
    { topologySpreadConstraints: [{ maxSkew: 0, topologyKey: '', whenUnsatisfiable: 'x' }] },
    'spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero',
    'spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty',
    'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "x": supported values: "DoNotSchedule", "ScheduleAnyway"',
  ],
];

describe('validation of a new Pod', () => {
  it.each([
    ['containers', containers],
    ['init containers', initContainers],
    ['ports', ports],
    ['environment variables', environment],
    ['volumes', volumes],
    ['resources', resources],
    ['probes', probes],
    ['security contexts', security],
    ['fields of the Pod', pod],
    ['placement', placement],
  ])('validation of a new Pod finds all errors in %s', (_name, cases) => {
    for (const [spec, ...expected] of cases) expect(errorsOf(spec)).toEqual(expected);
  });
});

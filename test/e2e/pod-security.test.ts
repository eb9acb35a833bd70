/** Tests every control of both levels, in containers of every kind that a new Pod can have. */
import { expect } from 'vitest';
import type { Container, Pod, PodSpec } from '../../src/api/generated/types.ts';
import type { CommandResult } from '../../src/platform/processes.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { lifepod, record, test } from '../support/shared-engine.ts';

type SecurityContext = NonNullable<Container['securityContext']>;

/** The labels have no prefix, such as `enforce=baseline`. */
const label = (...labels: string[]): Promise<CommandResult> =>
  lifepod.kubectl(
    'label',
    'namespace',
    lifepod.namespace,
    '--overwrite',
    ...labels.map((each) => `pod-security.kubernetes.io/${each}`),
  );

const SAFE: SecurityContext = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  runAsNonRoot: true,
  runAsUser: 1000,
  seccompProfile: { type: 'RuntimeDefault' },
};

/**
 * Returns a Pod that the level restricted allows. `change` overrides fields of the container `name`, and `spec` overrides fields of the
 * Pod.
 */
function safePod(podName: string, name = '', change: Partial<Container> = {}, spec: Partial<PodSpec> = {}): object {
  const safe = (own: string, script: string) => {
    const changed = own === name ? change : {};
    return { name: own, script, ...changed, securityContext: { ...SAFE, ...changed.securityContext } };
  };
  const [init, app, defer] = [safe('init', 'true'), safe('app', WAIT), { ...safe('defer', 'true'), timeoutSeconds: 5 }];
  return pod(podName, { init: [init], app: [app], defer: [defer], spec: spec as Record<string, unknown> });
}

const context = (securityContext: SecurityContext): Partial<Container> => ({ securityContext });

/** Baseline forbids these settings of a container. In the message, NAME is the name of the container. */
const BASELINE: [Partial<Container>, string][] = [
  [
    context({ appArmorProfile: { type: 'Unconfined' } }),
    'forbidden AppArmor profile (container "NAME" must not set AppArmor profile type to "Unconfined")',
  ],
  [
    context({ capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] } }),
    'non-default capabilities (container "NAME" must not include "NET_ADMIN" in securityContext.capabilities.add)',
  ],
  [{ ports: [{ containerPort: 80, hostPort: 8099 }] }, 'hostPort (container "NAME" uses hostPort 8099)'],
  [
    context({ privileged: true, allowPrivilegeEscalation: true }),
    'privileged (container "NAME" must not set securityContext.privileged=true)',
  ],
  [
    context({ seLinuxOptions: { type: 'spc_t' } }),
    'seLinuxOptions (container "NAME" set forbidden securityContext.seLinuxOptions: type "spc_t")',
  ],
  [
    context({ seccompProfile: { type: 'Unconfined' } }),
    'seccompProfile (container "NAME" must not set securityContext.seccompProfile.type to "Unconfined")',
  ],
];

const BASELINE_PODS: [Partial<PodSpec>, string][] = [
  [{ hostNetwork: true, hostPID: true }, 'host namespaces (hostNetwork=true, hostPID=true)'],
  [{ volumes: [{ name: 'root', hostPath: { path: '/' } }] }, 'hostPath volumes (volume "root")'],
  [
    { securityContext: { sysctls: [{ name: 'net.core.somaxconn', value: '1' }] } },
    'forbidden sysctls (net.core.somaxconn)',
  ],
  [
    { securityContext: { windowsOptions: { hostProcess: true } } },
    'hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)',
  ],
];

const RESTRICTED: [Partial<Container>, string][] = [
  [
    { securityContext: { ...SAFE, allowPrivilegeEscalation: true } },
    'allowPrivilegeEscalation != false (container "NAME" must set securityContext.allowPrivilegeEscalation=false)',
  ],
  [
    context({ capabilities: { add: ['CHOWN'] } }),
    'unrestricted capabilities (container "NAME" must set securityContext.capabilities.drop=["ALL"]; container "NAME" must not include "CHOWN" in securityContext.capabilities.add)',
  ],
  [
    context({ runAsNonRoot: false }),
    'runAsNonRoot != true (container "NAME" must not set securityContext.runAsNonRoot=false)',
  ],
  [context({ runAsUser: 0 }), 'runAsUser=0 (container "NAME" must not set runAsUser=0)'],
  [
    context({ seccompProfile: undefined } as SecurityContext),
    'seccompProfile (pod or container "NAME" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  ],
];

const RESTRICTED_PODS: [Partial<PodSpec>, string][] = [
  [
    { volumes: [{ name: 'root', hostPath: { path: '/' } }] },
    'restricted volume types (volume "root" uses restricted volume type "hostPath")',
  ],
];

async function expectRefusals(
  level: string,
  ofContainers: readonly [Partial<Container>, string][],
  ofPods: readonly [Partial<PodSpec>, string][],
): Promise<void> {
  const cases = [
    ...ofContainers.flatMap(([change, message]) =>
      ['init', 'app', 'defer'].map((name) => ({ name, change, spec: {}, message: message.replaceAll('NAME', name) })),
    ),
    ...ofPods.map(([spec, message]) => ({ name: '', change: {}, spec, message })),
  ];
  const items = cases.map(({ name, change, spec }, index) => safePod(`p${index}`, name, change, spec));
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  const { code, stderr } = await lifepod.kubectlInput(list, 'create', '-f', '-');
  expect(code).toBe(1);
  expect(stderr.trim().split('\n')).toEqual(
    cases.map(
      ({ message }, index) =>
        `Error from server (Forbidden): error when creating "STDIN": pods "p${index}" is forbidden: violates PodSecurity "${level}": ${message}`,
    ),
  );
}

test('a baseline namespace rejects what each control forbids, and runs other Pods', async () => {
  await label('enforce=baseline');
  await expectRefusals('baseline:latest', BASELINE, BASELINE_PODS);
  // procMount needs hostUsers: false, which lifepod never accepts, so the error is that of validation.
  const unmasked = safePod('unmasked', 'app', context({ procMount: 'Unmasked' }));
  expect((await lifepod.kubectlInput(JSON.stringify(unmasked), 'create', '-f', '-')).stderr).toContain(
    'Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`',
  );
  await lifepod.apply(pod('plain'));
  await lifepod.wait('--for=condition=Ready', 'pod/plain');
  const debugged = await lifepod.kubectl(
    ...['debug', 'plain', '--image=busybox:1.28', '--profile=sysadmin', '-c', 'debugger', '--', 'true'],
  );
  expect(debugged.code).toBe(1);
  expect(debugged.stderr).toContain(
    'pods "plain" is forbidden: violates PodSecurity "baseline:latest": privileged (container "debugger" must not set securityContext.privileged=true)',
  );
});

test('a restricted namespace rejects what each control forbids, and runs a Pod with an init, an app and a defer container', async () => {
  await label('enforce=restricted', 'enforce-version=v1.33');
  await expectRefusals('restricted:v1.33', RESTRICTED, RESTRICTED_PODS);
  await lifepod.apply(safePod('safe'));
  await lifepod.wait('--for=condition=Ready', 'pod/safe');
  await lifepod.delete('pod', 'safe');
  await record.gone('safe');
  const entries = record.history('safe').at(-1)?.pod.status?.deferContainerStatuses;
  expect(entries?.map(({ state }) => state?.terminated?.exitCode)).toEqual([0]);
});

test('a label that begins to enforce a level warns about existing Pods, which continue to run, and invalid labels are rejected', async () => {
  await lifepod.apply(pod('a', { defer: [{ name: 'entry', script: 'true', securityContext: { privileged: true } }] }));
  await lifepod.apply(pod('b', { app: [{ name: 'app', script: WAIT, securityContext: { privileged: true } }] }));
  const warning = [
    `Warning: existing pods in namespace "${lifepod.namespace}" violate the new PodSecurity enforce level "baseline:latest"`,
    'Warning: a (and 1 other pod): privileged',
  ];
  const { code, stderr } = await label('enforce=baseline');
  expect({ code, warnings: stderr.trim().split('\n') }).toEqual({ code: 0, warnings: warning });
  const invalid = await label('warn=strict');
  expect(invalid.code).toBe(1);
  expect(invalid.stderr).toContain(
    'metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: "strict": must be one of privileged, baseline, restricted',
  );
  await lifepod.wait('--for=condition=Ready', 'pod/a', 'pod/b');
  await lifepod.kubectlOk('annotate', 'pod', 'a', 'changed=yes');
});

test('kubectl apply of a Deployment shows the warning, and the Pods are rejected when the level is enforced', async () => {
  await label('warn=restricted', 'warn-version=v1.24');
  const containers = [{ name: 'web', image: 'busybox:1.28', command: ['sh', '-c', WAIT] }];
  const deferContainers = [
    { name: 'entry', imageFrom: 'web', command: ['true'], timeoutSeconds: 5, securityContext: SAFE },
  ];
  const deployment = JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: {
      selector: { matchLabels: { app: 'web' } },
      template: { metadata: { labels: { app: 'web' } }, spec: { containers, deferContainers } },
    },
  });
  const detail = [
    'allowPrivilegeEscalation != false (container "web" must set securityContext.allowPrivilegeEscalation=false)',
    'unrestricted capabilities (container "web" must set securityContext.capabilities.drop=["ALL"])',
    'runAsNonRoot != true (pod or container "web" must set securityContext.runAsNonRoot=true)',
    'seccompProfile (pod or container "web" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  ].join(', ');
  const { code, stdout, stderr } = await lifepod.kubectlInput(deployment, 'apply', '-f', '-');
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'deployment.apps/web created\n' });
  expect(stderr).toBe(`Warning: would violate PodSecurity "restricted:v1.24": ${detail}\n`);
  await lifepod.kubectlOk('rollout', 'status', 'deployment/web', '--timeout=60s');
  await label('enforce=restricted');
  await lifepod.kubectlOk('rollout', 'restart', 'deployment/web');
  await lifepod.wait('--for=condition=ReplicaFailure', 'deployment/web');
  const events = await lifepod.kubectlOk('get', 'events', '--field-selector=reason=FailedCreate');
  expect(events).toContain(`is forbidden: violates PodSecurity "restricted:latest": ${detail}`);
});

test('a namespace without labels runs a privileged Pod', async () => {
  await lifepod.apply(pod('a', { app: [{ name: 'app', script: WAIT, securityContext: { privileged: true } }] }));
  await lifepod.wait('--for=condition=Ready', 'pod/a');
  expect((await lifepod.get<Pod>('pod', 'a')).spec?.containers[0]?.securityContext).toEqual({ privileged: true });
});

import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type {
  Container,
  ContainerState,
  DeferContainer,
  EnvVar,
  Pod,
  PodSpec,
  PodStatus,
} from '../../../../generated/types.ts';
import { podKind } from '../index.ts';
import { containerOf, defaulted, deferOf, podOf, statusOf } from '../pod-fixtures.ts';
import { terminationReasons } from '../status/termination-reasons.ts';
import { validateEphemeralContainersUpdate } from './validate-update.ts';
import { validatePodCreate } from './validation.ts';

const errorsOf = (spec: Partial<PodSpec>): string[] => validatePodCreate(defaulted(podOf(spec))).map(fieldErrorText);
const entry = (more: Partial<DeferContainer>): Partial<PodSpec> => ({ deferContainers: [deferOf('entry', more)] });
const exec = { exec: { command: ['true'] } };
const path = 'spec.deferContainers[0]';

type Case = [name: string, spec: Partial<PodSpec>, ...errors: string[]];
const check = (subject: string, cases: Case[]): void =>
  void it.each(cases)(`${subject}: %s`, (_, spec, ...expected) => expect(errorsOf(spec)).toEqual(expected));

describe('names are unique across init, app, defer and ephemeral containers', () => {
  check('names of containers', [
    ['all different', { initContainers: [containerOf('i')], deferContainers: [deferOf('d'), deferOf('e')] }],
    ['the name of an app container', { deferContainers: [deferOf('app')] }, `${path}.name: Duplicate value: "app"`],
    [
      'the name of an init container',
      { initContainers: [containerOf('i')], deferContainers: [deferOf('i')] },
      `${path}.name: Duplicate value: "i"`,
    ],
    [
      'the same name twice',
      { deferContainers: [deferOf('d'), deferOf('d')] },
      'spec.deferContainers[1].name: Duplicate value: "d"',
    ],
  ]);

  const debugging = (target: string, name = 'debug'): string[] => {
    const pod = defaulted(
      podOf({ ...entry({}), ephemeralContainers: [{ ...containerOf(name), targetContainerName: target }] }),
    );
    const errors = validateEphemeralContainersUpdate(pod, defaulted(podOf(entry({}))));
    return errors.map(fieldErrorText);
  };

  it('an ephemeral container may not have the name of a defer container', () => {
    expect(debugging('app', 'entry')).toEqual(['spec.ephemeralContainers[0].name: Duplicate value: "entry"']);
  });

  it('an ephemeral container may not target a defer container', () => {
    expect(debugging('app')).toEqual([]);
    expect(debugging('entry')).toEqual([
      'spec.ephemeralContainers[0].targetContainerName: Invalid value: "entry": must not be a defer container',
    ]);
    expect(debugging('none')).toEqual(['spec.ephemeralContainers[0].targetContainerName: Not found: "none"']);
  });
});

describe('rules of app containers apply to defer containers', () => {
  const broken: [string, Partial<Container>][] = [
    ['no name', { name: '' }],
    ['an invalid name', { name: 'A_b' }],
    ['spaces around the image', { image: ' a ' }],
    ['an unknown pull policy', { imagePullPolicy: 'Sometimes' }],
    ['an unknown message policy', { terminationMessagePolicy: 'x' }],
    ['invalid ports', { ports: [{ containerPort: 0 }, { containerPort: 65536, hostPort: -1 }] }],
    ['invalid variables', { env: [{ name: '' }, { name: 'A', valueFrom: {} }] }],
    ['an invalid source of variables', { envFrom: [{}] }],
    ['an unknown volume', { volumeMounts: [{ name: 'none', mountPath: '/x' }] }],
    ['an unknown device', { volumeDevices: [{ name: 'none', devicePath: '/x' }] }],
    ['a request above its limit', { resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } }],
    ['an invalid resize policy', { resizePolicy: [{ resourceName: 'gpu', restartPolicy: 'NotRequired' }] }],
    [
      'a security context that contradicts itself',
      { securityContext: { privileged: true, allowPrivilegeEscalation: false } },
    ],
    ['a liveness probe without a handler', { livenessProbe: {} }],
    ['a liveness probe with two successes', { livenessProbe: { ...exec, successThreshold: 2 } }],
  ];
  it.each(broken)('a defer container is validated like an app container: %s', (_, more) => {
    const inPlace = (texts: string[]): string[] =>
      texts.map((text) => text.replace(/spec\.\w+\[\d\]/g, 'spec.list[0]'));
    const asApp = errorsOf({ containers: [containerOf('entry', more)] });
    expect(asApp.length).toBeGreaterThan(0);
    expect(inPlace(errorsOf(entry(more)))).toEqual(inPlace(asApp));
  });

  it('in the host network, a port of a defer container must be the host port', () => {
    expect(errorsOf({ hostNetwork: true, ...entry({ ports: [{ containerPort: 1, hostPort: 2 }] }) })).toEqual([
      `${path}.ports[0].hostPort: Invalid value: 2: must match \`containerPort\` when \`hostNetwork\` is true`,
    ]);
  });
});

describe('probes and hooks', () => {
  check('probes and hooks of a defer container', [
    ['a livenessProbe is allowed', entry({ livenessProbe: exec })],
    ...(['readinessProbe', 'startupProbe'] as const).map(
      (field): Case => [
        `a ${field} is forbidden`,
        entry({ [field]: exec }),
        `${path}.${field}: Forbidden: may not be set for defer containers`,
      ],
    ),
    [
      'a lifecycle is forbidden',
      entry({ lifecycle: { preStop: exec } }),
      `${path}.lifecycle: Forbidden: may not be set for defer containers`,
    ],
  ]);
});

describe('trigger, restartPolicy and timeoutSeconds', () => {
  const before = deferOf('before', { trigger: 'PreExit' });
  const after = deferOf('after', { trigger: 'PostExit' });
  check('defer containers', [
    ['PreExit entries before PostExit entries are valid', { deferContainers: [before, after] }],
    [
      'a PreExit entry after a PostExit entry',
      { deferContainers: [after, before, deferOf('last')] },
      'spec.deferContainers[1].trigger: Invalid value: "PreExit": must not come after an entry with trigger PostExit',
      'spec.deferContainers[2].trigger: Invalid value: "PreExit": must not come after an entry with trigger PostExit',
    ],
    [
      'an unknown trigger',
      entry({ trigger: 'OnExit' }),
      `${path}.trigger: Unsupported value: "OnExit": supported values: "PreExit", "PostExit"`,
    ],
    ...['Always', 'OnFailure', 'Never'].map(
      (restartPolicy): Case => [`restartPolicy ${restartPolicy} is known`, entry({ restartPolicy })],
    ),
    [
      'an unknown restartPolicy',
      entry({ restartPolicy: 'Sometimes' }),
      `${path}.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"`,
    ],
    ['timeoutSeconds of 1', entry({ timeoutSeconds: 1 })],
    [
      'timeoutSeconds of 0',
      entry({ timeoutSeconds: 0 }),
      `${path}.timeoutSeconds: Invalid value: 0: must be greater than 0`,
    ],
    [
      'negative timeoutSeconds',
      entry({ timeoutSeconds: -1 }),
      `${path}.timeoutSeconds: Invalid value: -1: must be greater than 0`,
    ],
  ]);
});

describe('image and imageFrom', () => {
  const withoutImage = (imageFrom?: string): Partial<PodSpec> => ({
    initContainers: [containerOf('init')],
    deferContainers: [{ name: 'entry', imageFrom }, deferOf('other')],
  });
  check('image of a defer container', [
    ['imageFrom names an app container', withoutImage('app')],
    ['imageFrom names an init container', withoutImage('init')],
    [
      'neither image nor imageFrom',
      withoutImage(),
      `${path}.image: Required value: must specify one of: \`image\` or \`imageFrom\``,
    ],
    [
      'both image and imageFrom',
      entry({ imageFrom: 'app' }),
      `${path}.imageFrom: Forbidden: may not be specified when \`image\` is not empty`,
    ],
    ['imageFrom names another entry', withoutImage('other'), `${path}.imageFrom: Not found: "other"`],
    ['imageFrom names the entry itself', withoutImage('entry'), `${path}.imageFrom: Not found: "entry"`],
    ['imageFrom names an unknown container', withoutImage('none'), `${path}.imageFrom: Not found: "none"`],
  ]);
});

describe('onReasons, when and failurePolicy', () => {
  const known =
    '"Deleted", "ScaledDown", "Replaced", "OwnerDeleted", "Evicted", "Preempted", "DeadlineExceeded", "NodeShutdown", "NodePressure", "Completed"';
  check('circumstances of a defer container', [
    ['every known reason', entry({ onReasons: [...terminationReasons] })],
    ['an empty list means every reason', entry({ onReasons: [] })],
    [
      'an unknown reason',
      entry({ onReasons: ['Deleted', 'Bored'] }),
      `${path}.onReasons[1]: Unsupported value: "Bored": supported values: ${known}`,
    ],
    [
      'a reason twice',
      entry({ onReasons: ['Deleted', 'Evicted', 'Deleted'] }),
      `${path}.onReasons[2]: Duplicate value: "Deleted"`,
    ],
    ...['Always', 'Succeeded', 'Failed'].map(
      (when): Case => [`when ${when} of a PostExit entry`, entry({ trigger: 'PostExit', when })],
    ),
    [
      'an unknown outcome',
      entry({ trigger: 'PostExit', when: 'Sometimes' }),
      `${path}.when: Unsupported value: "Sometimes": supported values: "Always", "Succeeded", "Failed"`,
    ],
    ...['Succeeded', 'Failed'].map(
      (when): Case => [
        `when ${when} of a PreExit entry`,
        entry({ when }),
        `${path}.when: Invalid value: "${when}": must be 'Always' when \`trigger\` is not 'PostExit'`,
      ],
    ),
    ...['Ignore', 'FailPod'].map(
      (failurePolicy): Case => [`failurePolicy ${failurePolicy} is known`, entry({ failurePolicy })],
    ),
    [
      'an unknown failurePolicy',
      entry({ failurePolicy: 'Panic' }),
      `${path}.failurePolicy: Unsupported value: "Panic": supported values: "Ignore", "FailPod"`,
    ],
  ]);
});

describe('preStopPolicy and postExitGracePeriodSeconds', () => {
  const reserve = 'spec.postExitGracePeriodSeconds';
  const of = (postExitGracePeriodSeconds: number, terminationGracePeriodSeconds = 30): Partial<PodSpec> => ({
    ...entry({}),
    postExitGracePeriodSeconds,
    terminationGracePeriodSeconds,
  });
  check('preStopPolicy and postExitGracePeriodSeconds', [
    ['hooks start at the same time as the entries', { ...entry({}), preStopPolicy: 'Concurrent' }],
    ['hooks start after the entries', { ...entry({}), preStopPolicy: 'AfterPreExit' }],
    [
      'an unknown preStopPolicy',
      { ...entry({}), preStopPolicy: 'Later' },
      'spec.preStopPolicy: Unsupported value: "Later": supported values: "Concurrent", "AfterPreExit"',
    ],
    ['no reserve', of(0)],
    ['a reserve of all but one second', of(29)],
    [
      'a reserve of the whole grace period',
      of(30),
      `${reserve}: Invalid value: 30: must be less than terminationGracePeriodSeconds (30)`,
    ],
    ['a negative reserve', of(-1), `${reserve}: Invalid value: -1: must be greater than or equal to 0`],
    [
      'a reserve of a grace period of 0',
      of(0, 0),
      `${reserve}: Invalid value: 0: must be less than terminationGracePeriodSeconds (0)`,
    ],
    [
      'a reserve of a negative grace period, which counts as 1 s',
      of(1, -5),
      `${reserve}: Invalid value: 1: must be less than terminationGracePeriodSeconds (-5)`,
    ],
  ]);
});

describe('extension of the grace period', () => {
  const interval = 'deferContainerGracePeriodExtensionInterval';
  const count = 'deferContainerGracePeriodExtensionCount';
  const withLiveness = 'Forbidden: may not be set when `deferContainerGracePeriodExtension` is true';
  check('extension of the grace period', [
    ['interval and count together, without entries', { [interval]: 10, [count]: 3 }],
    ['liveness, without entries', { deferContainerGracePeriodExtension: true, prePullDeferImages: false }],
    [
      'interval and count, with liveness disabled',
      { ...entry({}), deferContainerGracePeriodExtension: false, [interval]: 10, [count]: 3 },
    ],
    [
      'interval without count',
      { [interval]: 10 },
      `spec.${count}: Required value: must be set when \`${interval}\` is set`,
    ],
    [
      'count without interval',
      { [count]: 3 },
      `spec.${interval}: Required value: must be set when \`${count}\` is set`,
    ],
    [
      'interval and count of 0',
      { [interval]: 0, [count]: 0 },
      `spec.${interval}: Invalid value: 0: must be greater than 0`,
      `spec.${count}: Invalid value: 0: must be greater than 0`,
    ],
    [
      'negative interval and count',
      { [interval]: -1, [count]: -1 },
      `spec.${interval}: Invalid value: -1: must be greater than 0`,
      `spec.${count}: Invalid value: -1: must be greater than 0`,
    ],
    [
      'interval and count together with liveness',
      { deferContainerGracePeriodExtension: true, [interval]: 10, [count]: 3 },
      `spec.${interval}: ${withLiveness}`,
      `spec.${count}: ${withLiveness}`,
    ],
  ]);
});

describe('host ports', () => {
  const ports: Container['ports'] = [{ containerPort: 1, hostPort: 80 }];
  const sidecar = containerOf('sidecar', { restartPolicy: 'Always', ports });
  const taken = `${path}.ports[0].hostPort: Duplicate value: "TCP//80"`;
  const app = containerOf('app', { ports });
  check('host ports of defer containers', [
    ['a PreExit entry may not use a port of an app', { containers: [app], ...entry({ ports }) }, taken],
    ['a PostExit entry may use a port of an app', { containers: [app], ...entry({ ports, trigger: 'PostExit' }) }],
    ['a PreExit entry may not use a port of a sidecar', { initContainers: [sidecar], ...entry({ ports }) }, taken],
    [
      'a PostExit entry may not use a port of a sidecar',
      { initContainers: [sidecar], ...entry({ ports, trigger: 'PostExit' }) },
      taken,
    ],
    ['entries may use the same port', { deferContainers: [deferOf('a', { ports }), deferOf('b', { ports })] }],
    [
      'an entry may use a port of an init container',
      { initContainers: [containerOf('i', { ports })], ...entry({ ports }) },
    ],
    [
      'an entry may not use a port twice',
      entry({ ports: [...ports, { containerPort: 2, hostPort: 80 }] }),
      `${path}.ports[1].hostPort: Duplicate value: "TCP//80"`,
    ],
  ]);
});

describe('downward API of the termination', () => {
  const fields = ['containers', 'deadline', 'exitCodes', 'reason'].map((field) => `status.termination.${field}`);
  const env = (fieldPath: string): EnvVar[] => [{ name: 'A', valueFrom: { fieldRef: { fieldPath } } }];
  const others =
    '"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"';

  it.each(fields)('%s is available in the environment of defer containers', (field) => {
    expect(errorsOf(entry({ env: env(field) }))).toEqual([]);
    expect(errorsOf(entry({ env: env(field), trigger: 'PostExit' }))).toEqual([]);
  });

  it.each(fields)('%s is not available in the environment of init and app containers', (field) => {
    const refused = `valueFrom.fieldRef.fieldPath: Unsupported value: "${field}": supported values: ${others}`;
    expect(errorsOf({ containers: [containerOf('app', { env: env(field) })] })).toEqual([
      `spec.containers[0].env[0].${refused}`,
    ]);
    expect(errorsOf({ initContainers: [containerOf('i', { env: env(field) })] })).toEqual([
      `spec.initContainers[0].env[0].${refused}`,
    ]);
  });

  const inVolumes = (field: string): PodSpec['volumes'] => {
    const items = [{ path: 'x', fieldRef: { fieldPath: field } }];
    return [
      { name: 'v', downwardAPI: { items } },
      { name: 'w', projected: { sources: [{ downwardAPI: { items } }] } },
    ];
  };

  it.each(fields)('%s is available in downward API and projected volumes', (field) => {
    expect(errorsOf({ ...entry({}), volumes: inVolumes(field) })).toEqual([]);
  });

  it.each(fields)('%s is not available in volumes of a Pod without defer containers', (field) => {
    const refused = `Unsupported value: "${field}": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"`;
    expect(errorsOf({ volumes: inVolumes(field) })).toEqual([
      `spec.volumes[0].downwardAPI.fieldRef.fieldPath: ${refused}`,
      `spec.volumes[1].projected.sources[0].downwardAPI.fieldRef.fieldPath: ${refused}`,
    ]);
  });

  it('the environment of defer containers has all fields of app containers, and of the termination only the documented ones', () => {
    expect(errorsOf(entry({ env: env('status.podIP') }))).toEqual([]);
    expect(errorsOf(entry({ env: env("metadata.labels['a']") }))).toEqual([]);
    expect(errorsOf(entry({ env: env('status.phase') }))).toEqual([
      `${path}.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "status.phase": supported values: ${others}, ${fields.map((field) => `"${field}"`).join(', ')}`,
    ]);
    expect(errorsOf(entry({ env: env('status.termination.startedAt') }))).toEqual([
      `${path}.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "status.termination.startedAt": error converting fieldPath: field label not supported: status.termination.startedAt`,
    ]);
  });
});

const stored = (spec: Partial<PodSpec>): Pod => {
  const pod = defaulted(podOf(spec));
  pod.metadata.resourceVersion = '1';
  podKind.prepareForCreate?.(pod, { now: 0 });
  return pod;
};

describe('update of a Pod with defer containers', () => {
  const update = (change: (spec: PodSpec) => void, of: (pod: Pod) => void = () => {}): string[] => {
    const old = stored({ deferContainers: [deferOf('a'), deferOf('b')] });
    of(old);
    const pod = structuredClone(old);
    change(pod.spec as PodSpec);
    return podKind.validateUpdate(pod, old).map(fieldErrorText);
  };
  const setImages = ({ deferContainers }: PodSpec): void =>
    deferContainers?.forEach((each) => {
      each.image = 'busybox:2';
    });
  const ended = 'Forbidden: may not be changed once the pod is terminating';
  const onlyThese =
    'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.deferContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n';

  it('an update may change the images of defer containers', () => {
    expect(update(setImages)).toEqual([]);
  });

  it.each<[string, (pod: Pod) => void]>([
    ['the Pod is deleted', (pod) => Object.assign(pod.metadata, { deletionTimestamp: '2026-01-01T00:00:00Z' })],
    ['the Pod is terminating', (pod) => Object.assign(pod.status ?? {}, { termination: { reason: 'Completed' } })],
  ])('an update may not change the images of defer containers once %s', (_, of) => {
    expect(update(setImages, of)).toEqual([
      `spec.deferContainers[0].image: ${ended}`,
      `spec.deferContainers[1].image: ${ended}`,
    ]);
    expect(update((spec) => Object.assign(spec.containers[0] ?? {}, { image: 'busybox:2' }), of)).toEqual([]);
  });

  it.each<[string, (spec: PodSpec) => void, string]>([
    [
      'the command of an entry',
      (spec) => Object.assign(spec.deferContainers?.[1] ?? {}, { command: ['x'] }),
      'spec.deferContainers[1].command: unset -> ["x"]',
    ],
    [
      'the trigger of an entry',
      (spec) => Object.assign(spec.deferContainers?.[1] ?? {}, { trigger: 'PostExit' }),
      'spec.deferContainers[1].trigger: "PreExit" -> "PostExit"',
    ],
    [
      'the timeout of an entry',
      (spec) => Object.assign(spec.deferContainers?.[0] ?? {}, { timeoutSeconds: 5 }),
      'spec.deferContainers[0].timeoutSeconds: unset -> 5',
    ],
    [
      'the extension of the grace period',
      (spec) => {
        spec.deferContainerGracePeriodExtension = true;
      },
      'spec.deferContainerGracePeriodExtension: unset -> true',
    ],
    [
      'whether images are pulled in advance',
      (spec) => {
        spec.prePullDeferImages = false;
      },
      'spec.prePullDeferImages: true -> false',
    ],
  ])('an update may not change %s', (_, change, difference) => {
    expect(update(change)).toEqual([`${onlyThese}${difference}\n`]);
  });

  it.each<[string, (entry: DeferContainer) => void, string[]]>([
    [
      'another container',
      (each) => Object.assign(each, { imageFrom: 'sidecar' }),
      [`${onlyThese}spec.deferContainers[0].imageFrom: "app" -> "sidecar"\n`],
    ],
    [
      'from imageFrom to an image',
      (each) => Object.assign(each, { imageFrom: '', image: 'busybox:2' }),
      [`${onlyThese}spec.deferContainers[0].imageFrom: "app" -> ""\n`],
    ],
    [
      'both an image and imageFrom',
      (each) => Object.assign(each, { image: 'busybox:2' }),
      ['spec.deferContainers[0].imageFrom: Forbidden: may not be specified when `image` is not empty'],
    ],
  ])('imageFrom may not change: %s', (_, change, expected) => {
    const old = stored({
      initContainers: [containerOf('sidecar', { restartPolicy: 'Always' })],
      deferContainers: [{ name: 'entry', imageFrom: 'app' }],
    });
    const pod = structuredClone(old);
    for (const each of pod.spec?.deferContainers ?? []) change(each);
    expect(podKind.validateUpdate(pod, old).map(fieldErrorText)).toEqual(expected);
  });

  it('an update accepts a Pod that was stored before preStopPolicy, when and failurePolicy existed', () => {
    const old = stored({ deferContainers: [deferOf('a')] });
    delete old.spec?.preStopPolicy;
    for (const each of old.spec?.deferContainers ?? []) {
      delete each.when;
      delete each.failurePolicy;
    }
    const pod = structuredClone(old);
    pod.metadata.labels = { changed: 'yes' };
    podKind.defaults?.(pod, old);
    podKind.prepareForUpdate?.(pod, old, { now: 0 });
    expect(podKind.validateUpdate(pod, old)).toEqual([]);
    expect(pod.metadata.generation).toBe(old.metadata.generation);
    expect(pod.spec?.preStopPolicy).toBe('Concurrent');
  });

  it('an update may not reorder defer containers', () => {
    expect(update((spec) => spec.deferContainers?.reverse())).toEqual([
      `${onlyThese}spec.deferContainers[0].name: "a" -> "b"\nspec.deferContainers[1].name: "b" -> "a"\n`,
    ]);
  });

  it.each<[string, (spec: PodSpec) => void]>([
    ['add', (spec) => spec.deferContainers?.push(...(stored(entry({})).spec?.deferContainers ?? []))],
    ['remove', (spec) => spec.deferContainers?.pop()],
    [
      'remove all of',
      (spec) => {
        delete spec.deferContainers;
      },
    ],
  ])('an update may not %s defer containers', (_, change) => {
    expect(update(change)).toEqual(['spec.deferContainers: Forbidden: pod updates may not add or remove containers']);
  });

  it('the ephemeralcontainers subresource leaves defer containers unchanged', () => {
    const old = stored(entry({}));
    const body = structuredClone(old);
    (body.spec as PodSpec).ephemeralContainers = [{ ...containerOf('debug'), targetContainerName: 'app' }];
    const { apply, validate } = podKind.subresources['ephemeralcontainers'] ?? {};
    const pod = apply?.(old, body, { now: 0 }) as Pod;
    expect(validate?.(pod, old)).toEqual([]);
    expect(pod.spec?.deferContainers).toEqual(old.spec?.deferContainers);
  });
});

describe('status of defer containers', () => {
  const { apply, validate } = podKind.subresources['status'] ?? {};
  const statusWrite = (old: Pod, status: PodStatus): Pod => apply?.(old, { ...old, status } as Pod, { now: 0 }) as Pod;

  describe('an entry that has terminated for good may not run again', () => {
    const refused =
      'status.deferContainerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state';
    it.each<[string, number, string?]>([
      ['Never', 0, refused],
      ['Never', 1, refused],
      ['OnFailure', 0, refused],
      ['OnFailure', 1],
      ['Always', 0, refused],
      ['Always', 1],
    ])(
      'the status may report a new run if the policy allows it: restartPolicy %s after exit code %i',
      (restartPolicy, exitCode, ...expected) => {
        const of = (state: ContainerState): PodStatus => ({ deferContainerStatuses: [statusOf('entry', { state })] });
        const old = { ...stored(entry({ restartPolicy })), status: of({ terminated: { exitCode } }) };
        for (const state of [{ running: {} }, { waiting: { reason: 'CrashLoopBackOff' } }] as ContainerState[]) {
          const errors = validate?.({ ...structuredClone(old), status: of(state) }, old) ?? [];
          expect(errors.map(fieldErrorText)).toEqual(expected);
        }
        expect(validate?.(old, old)).toEqual([]);
      },
    );
  });

  const termination = (deadline: string) => ({
    reason: 'Deleted',
    startedAt: '2026-01-01T00:00:00.250000Z',
    deadline: `2026-01-01T00:00:${deadline}Z`,
  });

  it('a status write without the fields of defer containers keeps the termination and the statuses of entries', () => {
    const old = stored(entry({}));
    const deferContainerStatuses = [statusOf('entry', { state: { running: {} } })];
    old.status = { ...old.status, phase: 'Terminating', termination: termination('30.250000'), deferContainerStatuses };
    const pod = statusWrite(old, { phase: 'Terminating', message: 'x' });
    expect(pod.status).toEqual({ ...old.status, message: 'x' });
    expect(statusWrite(stored({}), { phase: 'Running' }).status).toEqual({ phase: 'Running', qosClass: 'BestEffort' });
  });

  it('a status write keeps the entries that were given up before the node observed it', () => {
    const old = stored({ deferContainers: [deferOf('entry'), deferOf('other')] });
    old.status = { ...old.status, termination: { ...termination('30.250000'), skip: ['entry'] } };
    const skipOf = (skip?: string[]) =>
      statusWrite(old, { termination: { ...termination('31.250000'), skip } }).status?.termination;
    expect(skipOf()).toEqual({ ...termination('31.250000'), skip: ['entry'] });
    expect(skipOf([])).toMatchObject({ skip: ['entry'] });
    expect(skipOf(['other', 'entry'])).toMatchObject({ skip: ['entry', 'other'] });
    old.status = { ...old.status, termination: termination('30.250000') };
    expect(skipOf()).toEqual(termination('31.250000'));
  });
});

describe('deletion of a Pod while its entries run', () => {
  const at = { now: Date.parse('2026-01-01T00:00:10Z') };
  const listRuns = (): Pod => {
    const pod = stored({ ...entry({}), nodeName: 'node-1', restartPolicy: 'Never' });
    pod.status = {
      ...pod.status,
      phase: 'Terminating',
      termination: {
        reason: 'Completed',
        startedAt: '2026-01-01T00:00:00.000000Z',
        deadline: '2026-01-01T00:00:30.000000Z',
      },
    };
    return pod;
  };
  it.each([
    [undefined, { now: false, graceSeconds: 30 }],
    [5, { now: false, graceSeconds: 5 }],
    [0, { now: true }],
  ])(
    'the deletion of a completed Pod is graceful while its entries run, with the grace period %s',
    (gracePeriodSeconds, expected) => {
      expect(podKind.deletion?.(listRuns(), { gracePeriodSeconds }, at)).toEqual(expected);
    },
  );
  it('the deletion of a completed Pod is immediate once its entries have terminated', () => {
    const pod = listRuns();
    pod.status = { ...pod.status, phase: 'Succeeded' };
    expect(podKind.deletion?.(pod, {}, at)).toEqual({ now: true });
  });
});

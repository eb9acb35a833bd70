/** Generates valid specs of Pods, without defaults, for property tests. */
import fc from 'fast-check';
import type {
  Container,
  DeferContainer,
  PodSpec,
  Probe,
  ResourceRequirements,
  Volume,
} from '../../../generated/types.ts';
import { terminationReasons } from './status/termination-reasons.ts';

const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });

/** JSON drops undefined fields. */
const compact = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

export const resources: fc.Arbitrary<ResourceRequirements> = fc
  .record({
    cpu: optional(fc.nat(4000)),
    memory: optional(fc.nat(4096)),
    limitCpu: optional(fc.nat(4000)),
    limitMemory: optional(fc.nat(4096)),
  })
  .map(({ cpu, memory, limitCpu, limitMemory }) =>
    compact({
      requests: {
        cpu: cpu === undefined ? undefined : `${Math.min(cpu, limitCpu ?? cpu)}m`,
        memory: memory === undefined ? undefined : `${Math.min(memory, limitMemory ?? memory)}Mi`,
      } as Record<string, string>,
      limits: {
        cpu: limitCpu === undefined ? undefined : `${limitCpu}m`,
        memory: limitMemory === undefined ? undefined : `${limitMemory}Mi`,
      } as Record<string, string>,
    }),
  );

const probe: fc.Arbitrary<Probe> = fc
  .record({
    handler: fc.constantFrom<Probe>(
      { exec: { command: ['true'] } },
      { httpGet: { port: 'http' } },
      { tcpSocket: { port: 80 } },
      { grpc: { port: 80 } },
    ),
    periodSeconds: optional(fc.integer({ min: 0, max: 100 })),
    initialDelaySeconds: optional(fc.nat(100)),
  })
  .map(({ handler, ...rest }) => ({ ...handler, ...rest }));

const container = (name: string, kind: 'init' | 'sidecar' | 'app'): fc.Arbitrary<Container> =>
  fc
    .record({
      image: fc.constantFrom('busybox', 'busybox:1.28', 'registry:5000/a/b', 'a@sha256:aa'),
      resources: optional(resources),
      ports: optional(fc.constant<Container['ports']>([{ name: 'http', containerPort: 80 }])),
      env: optional(
        fc.constant<Container['env']>([{ name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }]),
      ),
      volumeMounts: optional(fc.constant<Container['volumeMounts']>([{ name: 'v0', mountPath: '/v' }])),
      livenessProbe: kind === 'init' ? fc.constant(undefined) : optional(probe),
      readinessProbe: kind === 'init' ? fc.constant(undefined) : optional(probe),
      restartPolicy: fc.constant(kind === 'sidecar' ? 'Always' : undefined),
    })
    .map((rest) => compact({ name, ...rest }));

const defer = (name: string, trigger: 'PreExit' | 'PostExit'): fc.Arbitrary<DeferContainer> =>
  fc
    .record({
      common: container(name, 'init'),
      trigger: trigger === 'PreExit' ? fc.constantFrom(undefined, 'PreExit') : fc.constant('PostExit'),
      restartPolicy: optional(fc.constantFrom('Never', 'OnFailure', 'Always')),
      timeoutSeconds: optional(fc.integer({ min: 1, max: 100 })),
      onReasons: optional(fc.subarray([...terminationReasons])),
      when: trigger === 'PreExit' ? fc.constant(undefined) : optional(fc.constantFrom('Always', 'Succeeded', 'Failed')),
      failurePolicy: optional(fc.constantFrom('Ignore', 'FailPod')),
      imageFrom: optional(fc.constant('app0')),
      livenessProbe: optional(probe),
      // With hostNetwork, containers that run at the same time must not share a port.
      ports: optional(fc.constant<Container['ports']>([{ name: 'http', containerPort: 81 }])),
      terminationMessagePolicy: optional(fc.constantFrom('File', 'FallbackToLogsOnError')),
      env: optional(
        fc
          .constantFrom('containers', 'deadline', 'exitCodes', 'reason')
          .map((field): Container['env'] => [
            { name: 'END', valueFrom: { fieldRef: { fieldPath: `status.termination.${field}` } } },
          ]),
      ),
    })
    .map(({ common, ...rest }) => compact({ ...common, ...rest, image: rest.imageFrom ? undefined : common.image }));

const graceExtension = fc.constantFrom<Partial<PodSpec>>(
  {},
  { deferContainerGracePeriodExtension: true },
  { deferContainerGracePeriodExtensionInterval: 10, deferContainerGracePeriodExtensionCount: 3 },
);

const volumeSource: fc.Arbitrary<Omit<Volume, 'name'>> = fc.constantFrom<Omit<Volume, 'name'>>(
  {},
  { emptyDir: { sizeLimit: '0.5Gi' } },
  { configMap: { name: 'c' } },
  { secret: { secretName: 's' } },
  { hostPath: { path: '/x' } },
  { projected: { sources: [{ configMap: { name: 'c' } }] } },
);

const specs = (defers: boolean): fc.Arbitrary<PodSpec> =>
  fc
    .record({
      apps: fc.integer({ min: 1, max: 3 }),
      inits: fc.array(fc.constantFrom<'init' | 'sidecar'>('init', 'sidecar'), { maxLength: 4 }),
      before: fc.nat(defers ? 2 : 0),
      after: fc.nat(defers ? 2 : 0),
      extension: defers ? graceExtension : fc.constant({}),
      postExitGracePeriodSeconds: defers ? optional(fc.nat(29)) : fc.constant(undefined),
      preStopPolicy: defers ? optional(fc.constantFrom('Concurrent', 'AfterPreExit')) : fc.constant(undefined),
      prePullDeferImages: defers ? optional(fc.boolean()) : fc.constant(undefined),
      sources: fc.array(volumeSource, { minLength: 1, maxLength: 3 }),
      restartPolicy: optional(fc.constantFrom('Always', 'OnFailure', 'Never')),
      hostNetwork: optional(fc.boolean()),
      tolerations: optional(
        fc.constantFrom<PodSpec['tolerations']>([{ operator: 'Exists' }], [{ key: 'a', value: 'b' }]),
      ),
      activeDeadlineSeconds: optional(fc.integer({ min: 1, max: 1000 })),
      overhead: optional(fc.constant({ cpu: '0.25' })),
    })
    .chain(({ apps, inits, before, after, extension, sources, hostNetwork, ...rest }) =>
      fc
        .record({
          containers: fc.tuple(...Array.from({ length: apps }, (_, index) => container(`app${index}`, 'app'))),
          initContainers: fc.tuple(...inits.map((kind, index) => container(`init${index}`, kind))),
          deferContainers: fc.tuple(
            ...Array.from({ length: before }, (_, index) => defer(`before${index}`, 'PreExit')),
            ...Array.from({ length: after }, (_, index) => defer(`after${index}`, 'PostExit')),
          ),
        })
        .map(({ containers, initContainers, deferContainers }) =>
          compact({
            ...rest,
            ...extension,
            // With hostNetwork, containers that run at the same time must not share a port.
            hostNetwork: apps === 1 ? hostNetwork : undefined,
            containers,
            initContainers,
            deferContainers: deferContainers.length === 0 ? undefined : deferContainers,
            volumes: sources.map((source, index) => ({ name: `v${index}`, ...source })),
          }),
        ),
    );

export const podSpecs = specs(true);

export const podSpecsWithoutDefers = specs(false);

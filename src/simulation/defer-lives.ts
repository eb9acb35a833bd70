/**
 * Random lives of Pods with defer containers (entries). They extend the lives of random-lives.ts with entries, further sidecars, ephemeral
 * containers, terminations by the node, and the disturbances of misfortunes.ts. They have their own deletions, crashes and time limit.
 */
import fc from 'fast-check';
import type { DeferContainer, Pod } from '../api/generated/types.ts';
import type { RunScript } from '../runtime/simulated/simulated-runtime.ts';
import type { Crash, Life } from './life.ts';
import { misfortunes } from './misfortunes.ts';
import { lives, oneIn, probe, scripts, service } from './random-lives.ts';

const REASONS = ['Deleted', 'ScaledDown', 'Replaced', 'Evicted', 'NodeShutdown', 'Completed'] as const;

const entry = fc
  .record(
    {
      restartPolicy: fc.constantFrom('Never', 'Never', 'OnFailure', 'Always'),
      timeoutSeconds: fc.integer({ min: 1, max: 30 }),
      livenessProbe: probe,
      image: fc.constantFrom('busybox:1.28', 'tool:1', 'missing:1'),
      /** If defined, the entry has imageFrom instead of an image. */
      imageFrom: oneIn(4, fc.constant('app-1')),
      onReasons: oneIn(4, fc.subarray<string>([...REASONS], { minLength: 1 })),
      /** For PostExit entries only: PreExit entries have Always. */
      when: oneIn(4, fc.constantFrom('Always', 'Succeeded', 'Failed')),
      failurePolicy: fc.constantFrom('Ignore', 'FailPod'),
    },
    { requiredKeys: ['restartPolicy'] },
  )
  .map(
    ({ imageFrom, onReasons, when, image, ...rest }): Partial<DeferContainer> => ({
      ...rest,
      ...(imageFrom === undefined ? { image: image ?? 'busybox:1.28' } : { imageFrom }),
      ...(onReasons === undefined ? {} : { onReasons }),
      ...(when === undefined ? {} : { when }),
    }),
  );

/**
 * The fields that extend the grace period: no fields, fields for an extension while liveness probes succeed, or fields for a limited number
 * of intervals.
 */
const extension = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.constant({ deferContainerGracePeriodExtension: true }) },
  {
    weight: 1,
    arbitrary: fc.record({
      deferContainerGracePeriodExtensionInterval: fc.integer({ min: 1, max: 20 }),
      deferContainerGracePeriodExtensionCount: fc.integer({ min: 1, max: 4 }),
    }),
  },
);

/** A sidecar or ephemeral container either runs until it is stopped or killed, or ends on its own in every run. */
const companion = fc.oneof({ weight: 2, arbitrary: fc.tuple(service) }, { weight: 1, arbitrary: scripts });

export const deferLives = fc
  .tuple(
    lives,
    fc.record({
      entries: fc.array(entry, { minLength: 1, maxLength: 4 }),
      /** The number of PreExit entries, which come first. If there are fewer entries, all are PreExit entries. */
      preExit: fc.integer({ min: 0, max: 4 }),
      entryScripts: fc.array(fc.oneof({ weight: 4, arbitrary: scripts }, { weight: 1, arbitrary: fc.tuple(service) }), {
        minLength: 4,
        maxLength: 4,
      }),
      extension,
      prePullDeferImages: fc.boolean(),
      preStopPolicy: fc.constantFrom(undefined, 'Concurrent', 'AfterPreExit'),
      /** postExitGracePeriodSeconds, in percent of the grace period; undefined: the field is absent. */
      reserve: oneIn(2, fc.integer({ min: 0, max: 99 })),
      deletions: fc.array(
        fc.record(
          {
            at: fc.integer({ min: 0, max: 100_000 }),
            graceSeconds: fc.integer({ min: 0, max: 60 }),
            reason: fc.constantFrom(...REASONS),
          },
          { requiredKeys: ['at', 'graceSeconds'] },
        ),
        { maxLength: 2 },
      ),
      skips: fc.array(
        fc.record({ at: fc.integer({ min: 0, max: 130_000 }), entry: fc.constantFrom('defer-1', 'defer-2') }),
        { maxLength: 1 },
      ),
      nodeEnd: oneIn(
        8,
        fc.record({
          at: fc.integer({ min: 0, max: 100_000 }),
          reason: fc.constantFrom('NodePressure' as const, 'NodeShutdown' as const, 'Preempted' as const),
          graceSeconds: fc.integer({ min: 0, max: 40 }),
        }),
      ),
      /** In addition to the sidecar that the life may have. */
      sidecars: fc.array(companion, { maxLength: 2 }),
      /** Ephemeral containers are added one per second, the first 1 s after `debugAt`. */
      debuggers: fc.array(companion, { maxLength: 2 }),
      debugAt: fc.integer({ min: 0, max: 40_000 }),
      crashes: fc.array(
        fc.record<Crash>(
          {
            action: fc.integer({ min: 1, max: 60 }),
            asked: fc.boolean(),
            millis: fc.constantFrom(50, 50, 5_000, 90_000),
            reboot: fc.constantFrom(false, false, false, true),
          },
          { requiredKeys: ['action', 'asked'] },
        ),
        { maxLength: 5 },
      ),
      misfortunes,
      statusMillis: fc.constantFrom(1, 1, 5, 200),
      maxGracePeriodExtensionSeconds: fc.constantFrom(300, 300, 15),
    }),
  )
  .map(([life, given]): Life => {
    const { entries, preExit, entryScripts, prePullDeferImages, nodeEnd, sidecars, ...others } = given;
    const { debuggers, debugAt, reserve, preStopPolicy, misfortunes: ill, ...more } = others;
    const deferContainers = entries.map(
      (each, index): DeferContainer => ({
        name: `defer-${index + 1}`,
        imagePullPolicy: 'IfNotPresent',
        ...each,
        ...(index < preExit ? { trigger: 'PreExit', when: 'Always' } : { trigger: 'PostExit' }),
      }),
    );
    const { initContainers = [], ...spec } = life.pod.spec ?? { containers: [] };
    const container = (name: string) => ({ name, image: 'busybox:1.28', imagePullPolicy: 'IfNotPresent' });
    const further = sidecars.map((_, i) => ({ ...container(`side-${i + 2}`), restartPolicy: 'Always' }));
    const ephemeralContainers = debuggers.map((_, i) => container(`debug-${i + 1}`));
    const debugged = (count: number) => ({
      at: debugAt + 1000 * count,
      edit: (pod: Pod): Pod => ({
        ...pod,
        spec: { containers: [], ...pod.spec, ephemeralContainers: ephemeralContainers.slice(0, count) },
      }),
    });
    return {
      ...life,
      ...more,
      ...ill,
      edits: debuggers.map((_, i) => debugged(i + 1)),
      pod: {
        ...life.pod,
        spec: {
          ...spec,
          ...given.extension,
          prePullDeferImages,
          deferContainers,
          ...(preStopPolicy === undefined ? {} : { preStopPolicy }),
          ...(reserve === undefined
            ? {}
            : { postExitGracePeriodSeconds: Math.floor(((spec.terminationGracePeriodSeconds ?? 30) * reserve) / 100) }),
          initContainers: [...initContainers, ...further],
        },
      },
      scripts: {
        ...life.scripts,
        ...Object.fromEntries(deferContainers.map(({ name }, i) => [name, entryScripts[i] as RunScript[]])),
        ...Object.fromEntries(further.map(({ name }, i) => [name, sidecars[i] as RunScript[]])),
        ...Object.fromEntries(ephemeralContainers.map(({ name }, i) => [name, debuggers[i] as RunScript[]])),
      },
      pullable: (reference) => reference !== 'missing:1',
      ...(nodeEnd === undefined
        ? {}
        : {
            nodeEnd: {
              at: nodeEnd.at,
              by: { reason: nodeEnd.reason, message: 'simulated', graceSeconds: nodeEnd.graceSeconds },
            },
          }),
      limitMillis: 600_000,
    };
  });

/** Random lives of Pods with defer containers: those of lives.ts, each with a list, its scripts and its extensions. */
import fc from 'fast-check';
import type { DeferContainer, Pod } from '../api/generated/types.ts';
import type { RunScript } from '../runtime/simulated/simulated-runtime.ts';
import { lives, probe, scripts, service } from './lives.ts';
import type { Life } from './pod-life.ts';

const entry = fc.record<Partial<DeferContainer>>(
  {
    restartPolicy: fc.constantFrom('Never', 'Never', 'OnFailure', 'Always'),
    timeoutSeconds: fc.integer({ min: 1, max: 30 }),
    livenessProbe: probe,
    image: fc.constantFrom('busybox:1.28', 'tool:1', 'missing:1'),
  },
  { requiredKeys: ['restartPolicy'] },
);

/** None, by liveness, or by count. */
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

/** One that runs until it is stopped, or ends by itself again and again. */
const companion = fc.oneof({ weight: 2, arbitrary: fc.tuple(service) }, { weight: 1, arbitrary: scripts });

export const deferLives = fc
  .tuple(
    lives,
    fc.record({
      entries: fc.array(entry, { minLength: 1, maxLength: 4 }),
      /** How many of them are PreExit. */
      preExit: fc.integer({ min: 0, max: 4 }),
      entryScripts: fc.array(fc.oneof({ weight: 4, arbitrary: scripts }, { weight: 1, arbitrary: fc.tuple(service) }), {
        minLength: 4,
        maxLength: 4,
      }),
      extension,
      prePullDeferImages: fc.boolean(),
      deletions: fc.array(
        fc.record({ at: fc.integer({ min: 0, max: 100_000 }), graceSeconds: fc.integer({ min: 0, max: 60 }) }),
        { maxLength: 2 },
      ),
      nodeEnd: fc.option(
        fc.record({
          at: fc.integer({ min: 0, max: 100_000 }),
          reason: fc.constantFrom('NodePressure' as const, 'NodeShutdown' as const, 'Preempted' as const),
          graceSeconds: fc.integer({ min: 0, max: 40 }),
        }),
        { nil: undefined, freq: 8 },
      ),
      /** Beside those that the life has. */
      sidecars: fc.array(companion, { maxLength: 2 }),
      /** Ephemeral containers, and when the first of them was asked for. */
      debuggers: fc.array(companion, { maxLength: 2 }),
      debugAt: fc.integer({ min: 0, max: 40_000 }),
      crashes: fc.array(fc.record({ action: fc.integer({ min: 1, max: 60 }), asked: fc.boolean() }), { maxLength: 5 }),
      statusMillis: fc.constantFrom(1, 1, 5, 200),
      maxGracePeriodExtensionSeconds: fc.constantFrom(300, 300, 15),
    }),
  )
  .map(([life, given]): Life => {
    const { entries, preExit, entryScripts, prePullDeferImages, nodeEnd, sidecars, debuggers, debugAt, ...more } =
      given;
    const deferContainers = entries.map(
      (each, index): DeferContainer => ({
        name: `defer-${index + 1}`,
        image: 'busybox:1.28',
        imagePullPolicy: 'IfNotPresent',
        trigger: index < preExit ? 'PreExit' : 'PostExit',
        ...each,
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
      edits: debuggers.map((_, i) => debugged(i + 1)),
      pod: {
        ...life.pod,
        spec: {
          ...{ ...spec, ...given.extension, prePullDeferImages, deferContainers },
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

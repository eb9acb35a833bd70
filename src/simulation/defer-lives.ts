/** Random lives of Pods with defer containers: those of lives.ts, each with a list, its scripts and its extensions. */
import fc from 'fast-check';
import type { DeferContainer } from '../api/generated/types.ts';
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
        fc.record({ at: fc.integer({ min: 0, max: 100_000 }), graceSeconds: fc.integer({ min: 1, max: 60 }) }),
        { maxLength: 2 },
      ),
      nodeEnd: fc.option(
        fc.record({ at: fc.integer({ min: 0, max: 100_000 }), graceSeconds: fc.integer({ min: 0, max: 40 }) }),
        { nil: undefined, freq: 8 },
      ),
      crashes: fc.array(fc.record({ action: fc.integer({ min: 1, max: 60 }), asked: fc.boolean() }), { maxLength: 5 }),
      statusMillis: fc.constantFrom(1, 1, 5, 200),
      maxGracePeriodExtensionSeconds: fc.constantFrom(3600, 3600, 15),
    }),
  )
  .map(([life, given]): Life => {
    const { entries, preExit, entryScripts, prePullDeferImages, nodeEnd, ...more } = given;
    const deferContainers = entries.map(
      (each, index): DeferContainer => ({
        name: `defer-${index + 1}`,
        image: 'busybox:1.28',
        imagePullPolicy: 'IfNotPresent',
        trigger: index < preExit ? 'PreExit' : 'PostExit',
        ...each,
      }),
    );
    return {
      ...life,
      ...more,
      pod: {
        ...life.pod,
        spec: { containers: [], ...life.pod.spec, ...given.extension, prePullDeferImages, deferContainers },
      },
      scripts: {
        ...life.scripts,
        ...Object.fromEntries(deferContainers.map(({ name }, i) => [name, entryScripts[i] as RunScript[]])),
      },
      pullable: (reference) => reference !== 'missing:1',
      ...(nodeEnd === undefined
        ? {}
        : {
            nodeEnd: {
              at: nodeEnd.at,
              by: { reason: 'NodePressure' as const, message: 'simulated', graceSeconds: nodeEnd.graceSeconds },
            },
          }),
      limitMillis: 600_000,
    };
  });

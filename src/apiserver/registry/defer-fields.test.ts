import { describe, expect, test } from 'vitest';
import type { Pod, PodSpec } from '../../api/generated/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { failure, object, PODS, pod, ref, startRegistry } from './testing.ts';

const entries = [{ name: 'last', image: 'busybox:1.28', timeoutSeconds: 5 }];
const fields = { deferContainers: entries, preStopPolicy: 'AfterPreExit', postExitGracePeriodSeconds: 5 };

/** Returns the Pod as sent by a client whose types lack the fields for defer containers. */
function withoutFields(given: Pod): Pod {
  const { deferContainers, prePullDeferImages, preStopPolicy, postExitGracePeriodSeconds, ...spec } =
    given.spec as PodSpec;
  return { ...structuredClone(given), spec };
}

describe('a Pod with defer containers', () => {
  test('a Pod keeps its defer containers when a PUT without them changes other fields', async () => {
    const { registry } = await startRegistry();
    const created = (await registry.create(PODS, 'default', pod('a', fields))) as Pod;
    const sent = withoutFields(created);
    sent.metadata.labels = { changed: 'yes' };
    const written = (await registry.update(PODS, sent)) as Pod;
    expect(written.metadata.labels).toEqual({ changed: 'yes' });
    expect(written.metadata.generation).toBe(created.metadata.generation);
    expect(written.spec).toEqual(created.spec);
  });

  test('a PUT with an empty list of defer containers is refused, because entries of a Pod cannot be removed', async () => {
    const { registry } = await startRegistry();
    const created = (await registry.create(PODS, 'default', pod('a', fields))) as Pod;
    const sent = { ...created, spec: { ...created.spec, deferContainers: [] } } as KubeObject;
    expect(await failure(registry.update(PODS, sent))).toMatchObject({
      code: 422,
      message: expect.stringContaining('spec.deferContainers: Forbidden: pod updates may not add or remove containers'),
    });
  });

  test.each(['application/merge-patch+json', 'application/strategic-merge-patch+json'] as const)(
    'a patch of type %s that removes the defer containers of a Pod is refused',
    async (type) => {
      const { registry } = await startRegistry();
      await registry.create(PODS, 'default', pod('a', fields));
      const patched = registry.patch(PODS, 'default', 'a', type, { spec: { deferContainers: null } });
      expect(await failure(patched)).toMatchObject({
        code: 422,
        message: expect.stringContaining('may not add or remove containers'),
      });
    },
  );
});

describe('a PodTemplate with defer containers', () => {
  const TEMPLATES = ref('podtemplates');
  const templateOf = (spec: object) =>
    object('PodTemplate', 'a', {
      template: { spec: { containers: [{ name: 'app', image: 'busybox:1.28' }], ...spec } },
    });

  test('a PUT without the fields of defer containers removes them from a PodTemplate, with a warning', async () => {
    const { registry } = await startRegistry();
    await registry.create(TEMPLATES, 'default', templateOf(fields));
    const warnings: string[] = [];
    const sent = templateOf({});
    const written = await registry.update(
      TEMPLATES,
      { ...sent, metadata: { ...sent.metadata, namespace: 'default' } },
      { onWarning: (text) => warnings.push(text) },
    );
    expect(JSON.stringify(written)).not.toMatch(/defer|preStop/i);
    expect(warnings).toEqual([
      expect.stringMatching(/^template\.spec: the update omits and therefore removes deferContainers, /),
    ]);
  });
});

/** Pods that the level restricted allows, with containers of all kinds, and changed copies of them. */
import type { Container, PodSpec } from '../../../../generated/types.ts';
import { violationsOf } from './evaluate.ts';
import type { Level } from './policy.ts';

export const LISTS = ['initContainers', 'containers', 'deferContainers', 'ephemeralContainers'] as const;
export type List = (typeof LISTS)[number];

export const SAFE: NonNullable<Container['securityContext']> = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
};

export const safeContainer = (name: string, more: Partial<Container> = {}): Container => ({
  name,
  image: 'busybox',
  ...more,
  securityContext: { ...SAFE, ...more.securityContext },
});

export const safeSpec = (): PodSpec => ({
  initContainers: [safeContainer('init')],
  containers: [safeContainer('app')],
  deferContainers: [safeContainer('defer')],
  ephemeralContainers: [safeContainer('debug')],
});

export function specWith(list: List, change: Partial<Container>): { spec: PodSpec; name: string } {
  const spec = safeSpec();
  const name = spec[list]?.[0]?.name ?? '';
  spec[list] = [safeContainer(name, change)];
  return { spec, name };
}

export const violationLines = (
  level: Level,
  spec: PodSpec,
  { version = 'latest', annotations = {} }: { version?: string; annotations?: Record<string, string> } = {},
): string[] =>
  violationsOf({ level, version }, { metadata: { annotations }, spec }).map(
    ({ reason, detail }) => `${reason}: ${detail}`,
  );

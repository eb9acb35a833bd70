import type { Pod } from '../../../../generated/types.ts';

/** All that was to run has run: nothing of the Pod starts any more. Source: the Pod lifecycle page, Pod phase. */
export const hasEnded = ({ status }: Pick<Pod, 'status'>): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed';

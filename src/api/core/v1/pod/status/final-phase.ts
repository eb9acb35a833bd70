import type { Pod } from '../../../../generated/types.ts';

/** In a final phase, all containers have ended and none will start again. Source: Pod Lifecycle, "Pod phase". */
export const isFinalPhase = (phase: string | undefined): boolean => phase === 'Succeeded' || phase === 'Failed';

export const hasEnded = ({ status }: Pick<Pod, 'status'>): boolean => isFinalPhase(status?.phase);

import type { Pod } from '../../../../generated/types.ts';

/** Whether the phase is final: all containers have ended and none starts again. Source: the Pod lifecycle page, Pod phase. */
export const isFinalPhase = (phase: string | undefined): boolean => phase === 'Succeeded' || phase === 'Failed';

export const hasEnded = ({ status }: Pick<Pod, 'status'>): boolean => isFinalPhase(status?.phase);

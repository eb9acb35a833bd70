import { type ApiError, forbidden } from '../../../../machinery/status.ts';
import type { Pod } from '../../../generated/types.ts';
import { PODS } from '../../../resources.ts';

/** The error with which admission rejects a Pod (403). `cause`: the text after `pods "NAME" is forbidden: `. */
export const forbiddenPod = ({ metadata }: Pod, cause: string): ApiError => forbidden(PODS, metadata.name ?? '', cause);

/** The error with which admission rejects a Pod. */
import { type ApiError, forbidden } from '../../../../machinery/status.ts';
import type { Pod } from '../../../generated/types.ts';
import { PODS } from '../../../resources.ts';

/** Returns the error 403 Forbidden for the Pod. `cause`: the text after `pods "NAME" is forbidden: `. */
export const forbiddenPod = ({ metadata }: Pod, cause: string): ApiError => forbidden(PODS, metadata.name ?? '', cause);

/** The error with which admission rejects a Pod. */
import { type ApiError, forbidden } from '../../../../machinery/status.ts';
import type { Pod } from '../../../generated/types.ts';
import { PODS } from '../../../resources.ts';

/** The 403 for a Pod that an admission rule rejects. `cause`: upstream's wording. */
export const forbiddenPod = ({ metadata }: Pod, cause: string): ApiError => forbidden(PODS, metadata.name ?? '', cause);

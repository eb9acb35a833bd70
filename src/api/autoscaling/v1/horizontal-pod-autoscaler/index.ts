/** The HorizontalPodAutoscaler of autoscaling/v1, which is stored in the version v2. Source: pkg/apis/autoscaling/v1 of v1.33. */
import type { HorizontalPodAutoscaler, V2HorizontalPodAutoscaler } from '../../../generated/types.ts';
import { otherVersion } from '../../../other-version.ts';
import { horizontalPodAutoscalerKind } from '../../v2/horizontal-pod-autoscaler/index.ts';
import { fromV2, toV2 } from './conversion.ts';

export const horizontalPodAutoscalerV1Kind = otherVersion<HorizontalPodAutoscaler, V2HorizontalPodAutoscaler>(
  horizontalPodAutoscalerKind,
  'v1',
  {
    defaults(autoscaler) {
      if (autoscaler.spec !== undefined) autoscaler.spec.minReplicas ??= 1;
    },
    toStored: toV2,
    fromStored: fromV2,
  },
);

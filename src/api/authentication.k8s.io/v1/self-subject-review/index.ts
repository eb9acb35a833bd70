/**
 * The SelfSubjectReview: asks which user the API server has authenticated (`kubectl auth whoami`).
 * Source: pkg/registry/authentication/selfsubjectreview of v1.33.
 */
import { formatTime } from '../../../../machinery/time.ts';
import { kind } from '../../../declaration.ts';
import type { SelfSubjectReview } from '../../../generated/types.ts';
import { userInfoOf } from '../user-info.ts';

export const selfSubjectReviewKind = kind<SelfSubjectReview>('authentication.k8s.io/v1', 'SelfSubjectReview', {
  scope: 'Cluster',
  createOnly: {
    review: async ({ apiVersion, kind: own }, { user, now }) => ({
      apiVersion,
      kind: own,
      metadata: { creationTimestamp: formatTime(now) } as SelfSubjectReview['metadata'],
      status: { userInfo: userInfoOf(user) },
    }),
  },
  columns: [],
});

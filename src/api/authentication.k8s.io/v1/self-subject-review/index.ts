/**
 * The SelfSubjectReview: asks as whom the API server has authenticated the client (`kubectl auth whoami`). It is answered at once and never
 * stored.
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

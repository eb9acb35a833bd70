/** The TokenReview: asks which user a token authenticates. Source: pkg/registry/authentication/tokenreview of v1.33. */
import { badRequest } from '../../../../machinery/status.ts';
import type { Reviewer } from '../../../../ports/reviews.ts';
import { kind } from '../../../declaration.ts';
import type { TokenReview } from '../../../generated/types.ts';
import { userInfoOf } from '../user-info.ts';

async function review(sent: TokenReview, reviewer: Reviewer): Promise<TokenReview> {
  const { token, audiences = [] } = sent.spec ?? {};
  if (!token) throw badRequest('token is required for TokenReview in authentication');
  const judgement = await reviewer.judgeToken(token, audiences);
  if ('error' in judgement) return { ...sent, status: { user: {}, error: judgement.error } };
  const { user, audiences: valid } = judgement;
  return { ...sent, status: { authenticated: true, user: userInfoOf(user), audiences: [...valid] } };
}

export const tokenReviewKind = kind<TokenReview>('authentication.k8s.io/v1', 'TokenReview', {
  scope: 'Cluster',
  createOnly: { review },
  columns: [],
});

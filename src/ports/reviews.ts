/** The port that answers reviews: objects such as TokenReview, which ask a question and are never stored. */
import type { Millis } from '../machinery/time.ts';
import type { Authorizer } from './authorizer.ts';
import type { UserInfo } from './request.ts';

/** Whom a token authenticates, and for which of the requested audiences; or why it authenticates no user. */
export type TokenJudgement = { user: UserInfo; audiences: readonly string[] } | { error: string };

export interface Reviewer extends Authorizer {
  /** The user who sends the review. */
  readonly user: UserInfo;
  readonly now: Millis;
  /** `audiences`: those of the API if empty. */
  judgeToken(token: string, audiences: readonly string[]): Promise<TokenJudgement>;
}

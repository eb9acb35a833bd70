/** Answers the questions that clients ask by creating a review, such as a TokenReview. A review is never stored. */
import type { Millis } from '../machinery/time.ts';
import type { Authorizer } from './authorizer.ts';
import type { UserInfo } from './request.ts';

/** The user that a token authenticates, and the requested audiences for which it is valid; or why the token authenticates no user. */
export type TokenJudgement = { user: UserInfo; audiences: readonly string[] } | { error: string };

export interface Reviewer extends Authorizer {
  readonly user: UserInfo;
  readonly now: Millis;
  /** `audiences`: the requested audiences; if empty, the audiences of the API. */
  judgeToken(token: string, audiences: readonly string[]): Promise<TokenJudgement>;
}

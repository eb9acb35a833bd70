/** Serves the kinds whose objects are questions, such as TokenReview: a create responds with the answer and stores nothing. */
import type { KindDefinition } from '../../api/kind.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { WriteOptions } from '../../ports/backend.ts';
import type { Reviewer } from '../../ports/reviews.ts';
import { decodeBody } from '../registry/body.ts';
import type { ServerContext } from './context.ts';
import type { Exchange } from './exchange.ts';

type Review = (question: KubeObject, reviewer: Reviewer) => Promise<KubeObject>;

/** Returns undefined if the objects of the kind are not questions. */
export const reviewOf = ({ createOnly }: KindDefinition): Review | undefined =>
  createOnly !== undefined && 'review' in createOnly ? createOnly.review : undefined;

/** Rejects with the errors of decodeBody() and of the review. */
export async function answerReview(
  { authentication, authorizer, timers }: Pick<ServerContext, 'authentication' | 'authorizer' | 'timers'>,
  { user, route }: Exchange,
  { kind, review }: { kind: KindDefinition; review: Review },
  { body, options }: { body: KubeObject; options: WriteOptions },
): Promise<KubeObject> {
  const question = decodeBody({ kind }, body, options);
  if (route?.namespace !== undefined) question.metadata.namespace ||= route.namespace;
  return review(question, { user, now: timers.now(), judgeToken: authentication.judgeToken, ...authorizer });
}

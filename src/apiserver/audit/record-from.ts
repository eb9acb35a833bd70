import type { UserInfo } from '../../ports/request.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Arrival, Audit } from './audit.ts';
import { observeResponse } from './observe-response.ts';
import type { RequestAudit } from './request-audit.ts';

/**
 * Resolves to the user once the arrival of the request is recorded. If `authenticate` fails, records the response, and rejects with the
 * same error. Rejects with 500 InternalError if the arrival cannot be recorded and the mode is blocking-strict.
 */
export async function recordFrom(
  audit: Audit,
  exchange: Exchange,
  arrived: Omit<Arrival, 'received'>,
  authenticate: () => UserInfo | Promise<UserInfo>,
): Promise<UserInfo> {
  const arrival = { ...arrived, received: audit.now() };
  const record = (recorder: RequestAudit | undefined): void => {
    if (recorder === undefined) return;
    exchange.auditing = recorder;
    observeResponse(exchange.response, recorder);
  };
  let user: UserInfo;
  try {
    user = await authenticate();
  } catch (error) {
    record(audit.begin(exchange, arrival, undefined));
    throw error;
  }
  const recorder = audit.begin(exchange, arrival, user);
  await recorder?.received();
  record(recorder);
  return user;
}

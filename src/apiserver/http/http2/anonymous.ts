import type { UserInfo } from '../../../ports/request.ts';
import { ANONYMOUS } from '../../auth/authentication/authenticate.ts';
import type { Exchange } from '../exchange.ts';

/**
 * Returns the user whom `authenticate` finds. An anonymous client could begin any number of requests on one connection of HTTP/2, so its
 * connection closes after its requests. Source: UnauthenticatedHTTP2DOSMitigation of v1.33.
 */
export function closingIfAnonymous(
  { request, response }: Exchange,
  authenticate: () => UserInfo | Promise<UserInfo>,
): UserInfo | Promise<UserInfo> {
  if (request.httpVersionMajor < 2) return authenticate();
  response.setHeader('Connection', 'close');
  const found = authenticate();
  const keepUnlessAnonymous = (user: UserInfo): UserInfo => {
    if (user.name !== ANONYMOUS.name) response.removeHeader('Connection');
    return user;
  };
  return found instanceof Promise ? found.then(keepUnlessAnonymous) : keepUnlessAnonymous(found);
}

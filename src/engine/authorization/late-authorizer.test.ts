import { expect, test } from 'vitest';
import type { Authorizer } from '../../ports/authorizer.ts';
import { API_SERVER } from '../../ports/request.ts';
import { SCHEDULER } from '../users.ts';
import { lateAuthorizers } from './late-authorizer.ts';

const saying = (reason: string): Authorizer => ({
  authorize: async () => ({ allowed: false, reason }),
  rulesFor: async () => ({ roles: [], errors: [reason] }),
});

test.each(['clients', 'components'] as const)(
  'decisions about %s wait for their authorizer, except those about members of system:masters',
  async (which) => {
    const { connect, [which]: authorizer } = lateAuthorizers();
    const request = { verb: 'get', path: '/x' };
    expect(await authorizer.authorize({ ...request, user: API_SERVER })).toEqual({ allowed: true, reason: '' });
    const decision = authorizer.authorize({ ...request, user: SCHEDULER });
    const rules = authorizer.rulesFor(SCHEDULER, '');
    connect({ clients: saying('clients'), components: saying('components') });
    expect(await decision).toEqual({ allowed: false, reason: which });
    expect(await rules).toEqual({ roles: [], errors: [which] });
  },
);

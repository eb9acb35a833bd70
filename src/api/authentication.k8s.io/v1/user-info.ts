import type { UserInfo } from '../../../ports/request.ts';
import type { UserInfo as SentUserInfo } from '../../generated/types.ts';

export const userInfoOf = ({ name, uid, groups, extra }: UserInfo): SentUserInfo => ({
  username: name,
  ...(uid === undefined ? {} : { uid }),
  groups: [...groups],
  ...(extra === undefined
    ? {}
    : { extra: Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]])) }),
});

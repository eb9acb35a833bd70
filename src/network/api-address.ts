/** The address of the API, whose connections no rule of the table may redirect or reject: an administrator could not repair the cause. */
import { familyOf, NFT_WORDS } from './families.ts';

export interface ApiAddress {
  ip: string;
  /** The TCP port. */
  port: number;
}

/** Returns the condition of a rule for packets to the API. */
export const toApi = ({ ip, port }: ApiAddress): string =>
  `${NFT_WORDS[familyOf(ip)].ip} daddr ${ip} tcp dport ${port}`;

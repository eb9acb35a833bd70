import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { formatIpRange, type IpRange, rangesOverlap } from '../machinery/ip.ts';
import { runCommandOk } from '../platform/processes.ts';
import { chooseFreeRanges, requirePodRanges, requireServiceRanges } from './free-ranges.ts';

test.each(['10.1.0.0/16', '10.0.0.0/8', '10.1.0.0/28', '10.1.0.0/16,fd00::/48', '10.1.0.0/16,fd00:0:0:1::/124'])(
  '--pod-cidr "%s" is accepted',
  (text) => {
    expect(requirePodRanges(text).map(formatIpRange).join()).toBe(text);
  },
);

test.each(['10.0.0.0', '10.0.0.0/33', '10.0.0.256/32', '10.0.0.1/24', '010.0.0.0/8', 'fd00::/64', '', 'x/8'])(
  '--pod-cidr "%s" is refused because it is not an IPv4 network',
  (text) => {
    expect(() => requirePodRanges(text)).toThrow(
      `--pod-cidr ${text} is not an IPv4 network: give one such as 10.222.0.0/16, or two such as 10.222.0.0/16,fd00:10:222::/64`,
    );
  },
);

test.each([
  ['has the IPv6 network first', 'fd00::/64,10.1.0.0/16'],
  ['has two IPv4 networks', '10.1.0.0/16,10.2.0.0/16'],
  ['has two IPv6 networks', 'fd00::/64,fd01::/64'],
  ['has three networks', '10.1.0.0/16,fd00::/64,fd01::/64'],
  ['is not in canonical form', '10.1.0.0/16,FD00::/64'],
  ['has bits after the prefix', '10.1.0.0/16,fd00::1/64'],
  ['has an empty part', '10.1.0.0/16,'],
  ['has a space', '10.1.0.0/16, fd00::/64'],
  ['has a part that is not a network', '10.1.0.0/16,fd00::'],
])('a pair of networks that %s is refused', (_, text) => {
  const message = (option: string, example: string): string =>
    `${option} ${text} is not an IPv4 network followed by an IPv6 network: give two such as ${example}`;
  expect(() => requirePodRanges(text)).toThrow(message('--pod-cidr', '10.222.0.0/16,fd00:10:222::/64'));
  expect(() => requireServiceRanges(text)).toThrow(message('--service-cidr', '10.96.0.0/16,fd00:10:96::/112'));
});

test.each([
  [requirePodRanges, '10.0.0.0/29', '--pod-cidr 10.0.0.0/29 has an unusable size: give an IPv4 network between /8 and'],
  [requirePodRanges, '0.0.0.0/0', 'between /8 and /28'],
  [requirePodRanges, '10.0.0.0/8,fd00::/47', '--pod-cidr fd00::/47 has an unusable size: give an IPv6 network between'],
  [requirePodRanges, '10.0.0.0/8,fd00::/125', 'between /48 and /124'],
  [requireServiceRanges, '10.0.0.0/8,fd00::/63', '--service-cidr fd00::/63 has an unusable size'],
  [requireServiceRanges, '10.0.0.0/8,fd00::/125', 'between /64 and /124'],
])('a network that is too small or too large is refused: %o %s', (requireRanges, text, message) => {
  expect(() => requireRanges(text)).toThrow(message);
});

test.each([
  ['127.0.0.0/8', '127.0.0.0/8 overlaps 127.0.0.0/8, which is for loopback'],
  ['127.5.0.0/16', '127.5.0.0/16 overlaps 127.0.0.0/8, which is for loopback'],
  ['169.254.0.0/16', '169.254.0.0/16 overlaps 169.254.0.0/16, which is for link-local addresses'],
  ['224.0.0.0/8', '224.0.0.0/8 overlaps 224.0.0.0/3, which is for multicast and reserved addresses'],
  ['0.0.0.0/8', '0.0.0.0/8 overlaps 0.0.0.0/8, which is for the local network'],
  ['10.0.0.0/8,fe80::/64', 'fe80::/64 overlaps fe80::/10, which is for link-local addresses'],
  ['10.0.0.0/8,ff02::/64', 'ff02::/64 overlaps ff00::/8, which is for multicast'],
  ['10.0.0.0/8,::/64', '::/64 overlaps ::/16, which is for loopback and embedded IPv4 addresses'],
])('a network that Pods and Services cannot use is refused: %s', (text, message) => {
  expect(() => requirePodRanges(text)).toThrow(`--pod-cidr ${message}: give a private network such as 10.222.0.0/16`);
  expect(() => requireServiceRanges(text)).toThrow(
    `--service-cidr ${message}: give a private network such as 10.96.0.0/16`,
  );
});

test('the free ranges for Pods and Services do not overlap', async () => {
  const { podCidr, serviceCidr } = await chooseFreeRanges();
  const [pods, services] = [requirePodRanges(podCidr)[0], requireServiceRanges(serviceCidr)[0]];
  expect(rangesOverlap(pods as IpRange, services as IpRange)).toBe(false);
});

test('processes that choose at the same time get different ranges, although no route leads to them yet', async () => {
  // Other runs of this test on the machine have other ranges.
  const base = `10.${randomInt(224, 256)}.${randomInt(256)}`;
  const range = (index: number): string => `${base}.${index * 16}/28`;
  let next = 0;
  const candidate = (): string => range(next++ % 8);
  const chosen = await Promise.all([0, 1, 2, 3].map(() => chooseFreeRanges(candidate)));
  const all = chosen.flatMap(({ podCidr, serviceCidr }) => [podCidr, serviceCidr]);
  expect(all.sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map(range).sort());
  const inOtherProcess = `
    const { chooseFreeRanges } = await import(${JSON.stringify(import.meta.resolve('./free-ranges.ts'))});
    let next = 6;
    console.log((await chooseFreeRanges(() => \`${base}.\${next++ * 16}/28\`)).podCidr);`;
  const args = ['--input-type=module', '-e', inOtherProcess];
  expect((await runCommandOk(process.execPath, args)).trim()).toBe(range(8));
});

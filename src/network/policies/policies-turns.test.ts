import { expect, test } from 'vitest';
import type { NetworkPolicy } from '../../api/generated/types.ts';
import { PoliciesSection } from './policies-section.ts';

const policyOf = (name: string, namespace: string, spec: NetworkPolicy['spec']): NetworkPolicy => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name, namespace },
  spec,
});

/** CPU time does not contain the time of other programs on a busy machine. */
const cpuMillis = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

test('derives 1,000 Pods and 500 policies with 20 peers each in short steps, and reads no labels of unchanged Pods', () => {
  const section = new PoliciesSection();
  let reads = 0;
  const counted = new Proxy({ a: '3' } as Record<string, string>, {
    get(labels, key: string) {
      reads++;
      return labels[key];
    },
  });
  for (let index = 0; index < 1000; index++) {
    const labels = index === 0 ? counted : { a: String(index % 7) };
    const addresses = [`10.1.${index >> 8}.${index & 255}`];
    section.setPod(`p${index}`, { namespace: `n${index % 10}`, labels, addresses, ports: [] });
  }
  const policyWith = (name: string, namespace: string): NetworkPolicy =>
    policyOf(name, namespace, {
      podSelector: { matchLabels: { a: '1' } },
      policyTypes: ['Ingress'],
      ingress: [
        {
          from: Array.from({ length: 20 }, (_, peer) => ({
            namespaceSelector: {},
            podSelector: { matchLabels: { a: '3', [`${name}-${peer}`]: 'x' } },
          })),
        },
      ],
    });
  const longestStepMillis = (): number => {
    let longest = 0;
    const steps = section.steps();
    for (;;) {
      const began = cpuMillis();
      const { done } = steps.next();
      longest = Math.max(longest, cpuMillis() - began);
      if (done) return longest;
    }
  };
  for (let index = 0; index < 500; index++) section.setPolicy(`q${index}`, policyWith(`q${index}`, `n${index % 10}`));
  const longest = [longestStepMillis()];
  // The labels are read for the 50 policies of the namespace, but for no peer: peers are found by their rarest label, which no Pod has.
  expect(reads).toBeLessThan(100);
  reads = 0;
  section.setPolicy('new', policyWith('new', 'n1'));
  longest.push(longestStepMillis());
  expect(reads).toBeGreaterThan(0);
  expect(reads).toBeLessThan(100);
  section.setPod('p1', { namespace: 'n1', labels: { a: '1' }, addresses: ['10.1.0.1'], ports: [] });
  reads = 0;
  longest.push(longestStepMillis());
  expect(reads).toBe(0);
  expect(Math.max(...longest)).toBeLessThan(300);
}, 120_000);

test('takes a change that arrives between two steps into the next section', () => {
  const section = new PoliciesSection();
  const deny = policyOf('p', 'n1', { podSelector: {}, policyTypes: ['Ingress'] });
  for (const address of ['10.0.0.1', '10.0.0.2'])
    section.setPod(address, { namespace: 'n1', labels: {}, addresses: [address], ports: [] });
  section.setPolicy('p', deny);
  const steps = section.steps();
  while (!steps.next().done) {
    section.setPolicy('p', undefined);
    section.setPolicy('p2', policyOf('p2', 'n1', { podSelector: {}, policyTypes: ['Ingress'] }));
  }
  const parts = [...section.section().values()];
  const chains = new Map(parts.flatMap(({ chains = [] }) => chains.map(({ name, rules }) => [name, rules] as const)));
  const isolated = parts
    .flatMap(({ elements = [] }) => elements)
    .filter(({ set }) => set === 'policies/ingress-ip')
    .flatMap(({ values }) => [...values]);
  expect(isolated.map(([address]) => address)).toEqual(['10.0.0.1', '10.0.0.2']);
  for (const [, verdict] of isolated) {
    const [jump = '', ...rest] = chains.get(verdict.replace('goto ', '')) ?? [];
    expect(chains.has(jump.replace('jump ', ''))).toBe(true);
    expect(rest).toEqual(['drop']);
  }
});

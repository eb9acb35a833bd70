import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import { runAtOnce } from '../../../../../platform/work-in-turns.ts';
import type { Pod, PodSpec } from '../../../../generated/types.ts';
import { containerOf, podOf } from '../pod-fixtures.ts';
import { safeSpec, specWith, violationLines } from './controls-fixture.ts';
import { reasonsText, violationsOf, violationsText } from './evaluate.ts';
import { warningsAboutPods } from './existing-pods.ts';
import { levelText, mayForbidMore, policyOf } from './policy.ts';
import { isSignificantUpdate } from './significant-update.ts';

const LATEST = { level: 'restricted', version: 'latest' } as const;

describe('levels and versions', () => {
  it('privileged allows everything', () => {
    expect(violationsOf({ ...LATEST, level: 'privileged' }, podOf({ hostPID: true }))).toEqual([]);
  });

  it('restricted reports the violations of baseline first, and those that both levels report once', () => {
    const change = { securityContext: { privileged: true, capabilities: { add: ['SYS_ADMIN'] }, runAsUser: 0 } };
    const { spec } = specWith('deferContainers', change);
    spec.volumes = [{ name: 'root', hostPath: { path: '/' } }];
    spec.hostPID = true;
    const violations = violationsOf(LATEST, { spec });
    expect(reasonsText(violations)).toBe(
      'host namespaces, privileged, unrestricted capabilities, restricted volume types, runAsUser=0',
    );
    expect(violationsText(violations)).toBe(
      [
        'host namespaces (hostPID=true)',
        'privileged (container "defer" must not set securityContext.privileged=true)',
        'unrestricted capabilities (container "defer" must set securityContext.capabilities.drop=["ALL"]; container "defer" must not include "SYS_ADMIN" in securityContext.capabilities.add)',
        'restricted volume types (volume "root" uses restricted volume type "hostPath")',
        'runAsUser=0 (container "defer" must not set runAsUser=0)',
      ].join(', '),
    );
  });

  it('restricted applies a control of baseline in the versions in which it has no stricter one', () => {
    const { spec } = specWith('containers', { securityContext: { capabilities: { add: ['SYS_ADMIN'] } } });
    expect(violationLines('restricted', spec, { version: 'v1.21' })).toEqual([
      'non-default capabilities: container "app" must not include "SYS_ADMIN" in securityContext.capabilities.add',
    ]);
  });

  it.each(['latest', 'v1.33', 'v1.1000000', 'v1.9223372036854775807'])('%s evaluates all controls', (version) => {
    expect(violationsOf({ ...LATEST, version }, podOf())).toEqual(
      violationsOf({ ...LATEST, version: 'v1.32' }, podOf()),
    );
  });

  it('a Pod without a spec violates nothing', () => {
    expect(violationsOf(LATEST, {})).toEqual([]);
  });
});

describe('the policy of a Namespace', () => {
  const read = (labels: Record<string, string>) => {
    const prefixed = Object.entries(labels).map(([label, value]) => [`pod-security.kubernetes.io/${label}`, value]);
    const { policy, errors } = policyOf(Object.fromEntries(prefixed));
    const texts = [policy.enforce, policy.audit, policy.warn].map(levelText);
    return { policy: texts.join(' '), errors: errors.map(fieldErrorText) };
  };
  const NONE = 'privileged:latest privileged:latest privileged:latest';

  it('the policy of a Namespace without labels is privileged', () => {
    expect(read({})).toEqual({ policy: NONE, errors: [] });
    expect(policyOf(undefined)).toEqual(policyOf({ 'kubernetes.io/metadata.name': 'a' }));
  });

  it('the policy of a Namespace has a level and a version for each mode', () => {
    const labels = { enforce: 'baseline', 'audit-version': 'v1.0', warn: 'restricted', 'warn-version': 'v1.24' };
    expect(read(labels)).toEqual({ policy: 'baseline:latest privileged:v1.0 restricted:v1.24', errors: [] });
  });

  it('an invalid level counts as restricted for enforce, and as privileged for the other modes', () => {
    const must = 'must be one of privileged, baseline, restricted';
    expect(read({ enforce: 'Baseline', audit: '', warn: 'x' })).toEqual({
      policy: 'restricted:latest privileged:latest privileged:latest',
      errors: [
        `metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "Baseline": ${must}`,
        `metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: "": ${must}`,
        `metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: "x": ${must}`,
      ],
    });
  });

  it.each(['', '1.24', 'v1', 'v1.024', 'v2.0', 'v1.24.1', 'Latest', 'v1.9223372036854775808'])(
    'rejects the version %j',
    (version) => {
      expect(read({ 'enforce-version': version })).toEqual({
        policy: NONE,
        errors: [
          `metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: "${version}": must be "latest" or "v1.x"`,
        ],
      });
    },
  );

  it('a policy may forbid more if its level is stricter or its version differs, unless it is privileged', () => {
    const level = (text: string) => policyOf({ 'pod-security.kubernetes.io/enforce': text }).policy.enforce;
    expect(mayForbidMore(level('restricted'), level('baseline'))).toBe(true);
    expect(mayForbidMore(level('baseline'), level('restricted'))).toBe(false);
    expect(mayForbidMore(level('baseline'), level('baseline'))).toBe(false);
    expect(mayForbidMore({ ...level('baseline'), version: 'v1.1' }, level('restricted'))).toBe(true);
    expect(mayForbidMore({ ...level('privileged'), version: 'v1.1' }, level('restricted'))).toBe(false);
  });
});

describe('updates that are evaluated', () => {
  const changed = ({ metadata = {}, spec = {} }: { metadata?: object; spec?: Partial<PodSpec> }): boolean => {
    const old = podOf(safeSpec());
    const pod = { ...old, metadata: { ...old.metadata, ...metadata }, spec: { ...safeSpec(), ...spec } };
    return isSignificantUpdate(pod, old);
  };
  const annotated = (key: string) => ({ metadata: { annotations: { [key]: 'unconfined' } } });
  const other = (name: string) => [containerOf(name, { image: 'other' })];

  it.each([
    ['an image of an app container', { spec: { containers: other('app') } }],
    ['an image of an init container', { spec: { initContainers: other('init') } }],
    ['an image of a defer container', { spec: { deferContainers: other('defer') } }],
    ['a new ephemeral container', { spec: { ephemeralContainers: other('new') } }],
    ['a removed defer container', { spec: { deferContainers: undefined } }],
    ['the seccomp annotation of the Pod', annotated('seccomp.security.alpha.kubernetes.io/pod')],
    ['the seccomp annotation of a container', annotated('container.seccomp.security.alpha.kubernetes.io/defer')],
  ])('%s is significant', (_, change) => {
    expect(changed(change)).toBe(true);
  });

  it.each([
    ['nothing', {}],
    ['another annotation', annotated('a')],
    ['a label', { metadata: { labels: { a: 'b' } } }],
    ['a toleration', { spec: { tolerations: [{ operator: 'Exists' }] } }],
  ])('%s is not significant', (_, change) => {
    expect(changed(change)).toBe(false);
  });
});

describe('warnings about existing Pods', () => {
  const named = (name: string, spec = safeSpec(), controller?: string): Pod => ({
    ...podOf(spec),
    metadata: {
      name,
      ...(controller && {
        ownerReferences: [{ apiVersion: 'v1', kind: 'K', name: 'n', uid: controller, controller: true }],
      }),
    },
  });
  const root = (name: string, controller?: string): Pod =>
    named(name, specWith('deferContainers', { securityContext: { runAsUser: 0 } }).spec, controller);
  const warnings = (pods: Pod[], isOver = () => false): string[] =>
    runAtOnce(warningsAboutPods('ns', LATEST, pods, isOver));

  it('a warning about existing Pods names the first Pod with the same violations, and counts the others', () => {
    const pods = [
      root('c'),
      root('b'),
      named('safe'),
      root('d'),
      named('p', { ...safeSpec(), hostPID: true }),
      named('o', { ...safeSpec(), hostPID: true }),
      named('n', { ...safeSpec(), hostPID: true, hostIPC: true }),
      named('a', { ...safeSpec(), volumes: [{ name: 'v', hostPath: { path: '/' } }] }),
    ];
    expect(warnings(pods)).toEqual([
      'existing pods in namespace "ns" violate the new PodSecurity enforce level "restricted:latest"',
      'a: restricted volume types',
      'b (and 2 other pods): runAsUser=0',
      'n (and 2 other pods): host namespaces',
    ]);
    expect(warnings([root('b'), root('a')])).toContain('a (and 1 other pod): runAsUser=0');
  });

  it('there are no warnings about existing Pods if no Pod violates the level', () => {
    expect(warnings([])).toEqual([]);
    expect(warnings([named('a')])).toEqual([]);
  });

  it('warnings about existing Pods are limited to 3000 Pods, including a Pod of each controller', () => {
    const replicas = Array.from({ length: 3000 }, (_, index) => named(`a${index}`, safeSpec(), 'u1'));
    expect(warnings([...replicas, root('z', 'u2')])).toEqual([
      'new PodSecurity enforce level only checked against the first 3000 of 3001 existing pods',
      'existing pods in namespace "ns" violate the new PodSecurity enforce level "restricted:latest"',
      'z: runAsUser=0',
    ]);
  });

  it('the evaluation of existing Pods ends when the time is over', () => {
    expect(warnings([root('a'), root('b')], () => true)).toEqual([
      'new PodSecurity enforce level only checked against the first 1 of 2 existing pods',
      'existing pods in namespace "ns" violate the new PodSecurity enforce level "restricted:latest"',
      'a: runAsUser=0',
    ]);
  });
});

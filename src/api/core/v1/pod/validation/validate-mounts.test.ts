import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { Container, Volume, VolumeDevice, VolumeMount } from '../../../../generated/types.ts';
import { containerOf } from '../pod-fixtures.ts';
import { validateDevices, validateMounts } from './validate-mounts.ts';

const volumes = new Map<string, Volume>(
  [
    { name: 'a', emptyDir: {} },
    { name: 'claim', persistentVolumeClaim: { claimName: 'c' } },
    { name: 'scratch', ephemeral: {} },
  ].map((volume) => [volume.name, volume]),
);
const mountErrors = (container: Partial<Container>): string[] =>
  validateMounts(containerOf('app', container), volumes, 'mounts').map(fieldErrorText);
const deviceErrors = (container: Partial<Container>): string[] =>
  validateDevices(containerOf('app', container), volumes, 'devices').map(fieldErrorText);
const mount = (more: Partial<VolumeMount> = {}): VolumeMount => ({ name: 'a', mountPath: '/x', ...more });
const device = (more: Partial<VolumeDevice> = {}): VolumeDevice => ({ name: 'claim', devicePath: '/dev/x', ...more });

describe('the mounts of a container', () => {
  const PRIVILEGED = 'Bidirectional mount propagation is available only to privileged containers';
  const PROPAGATION = 'may only be specified when mountPropagation is None or not specified';
  it.each<[Partial<VolumeMount>, ...string[]]>([
    [{ subPath: 'a/b' }],
    [{ subPathExpr: '$(A)/b' }],
    [{ name: '' }, 'mounts[0].name: Required value', 'mounts[0].name: Not found: ""'],
    [
      { subPath: 'a', subPathExpr: 'b' },
      'mounts[0].subPathExpr: Invalid value: "b": subPathExpr and subPath are mutually exclusive',
    ],
    [{ subPathExpr: '../b' }, 'mounts.subPathExpr: Invalid value: "../b": must not contain \'..\''],
    [{ mountPropagation: 'None' }],
    [{ mountPropagation: 'HostToContainer' }],
    [{ mountPropagation: 'Bidirectional' }, `mounts.mountPropagation: Forbidden: ${PRIVILEGED}`],
    [
      { mountPropagation: 'x' },
      'mounts.mountPropagation: Unsupported value: "x": supported values: "Bidirectional", "HostToContainer", "None"',
    ],
    [{ recursiveReadOnly: 'Disabled' }],
    [{ recursiveReadOnly: 'Enabled', readOnly: true }],
    [{ recursiveReadOnly: 'IfPossible', readOnly: true, mountPropagation: 'None' }],
    [
      { recursiveReadOnly: 'x' },
      'mounts.recursiveReadOnly: Unsupported value: "x": supported values: "Disabled", "Enabled", "IfPossible"',
    ],
    [
      { recursiveReadOnly: 'Enabled' },
      'mounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true',
    ],
    [
      { recursiveReadOnly: 'IfPossible', readOnly: true, mountPropagation: 'HostToContainer' },
      `mounts.recursiveReadOnly: Forbidden: ${PROPAGATION}`,
    ],
  ])('the errors in the mount with %j are reported', (more, ...errors) => {
    expect(mountErrors({ volumeMounts: [mount(more)] })).toEqual(errors);
  });
  it('a privileged container may have bidirectional mounts', () => {
    const volumeMounts = [mount({ mountPropagation: 'Bidirectional' })];
    expect(mountErrors({ volumeMounts, securityContext: { privileged: true } })).toEqual([]);
  });
  it('one volume can be mounted at several paths', () => {
    expect(mountErrors({ volumeMounts: [mount(), mount({ mountPath: '/y' })] })).toEqual([]);
  });
});

describe('the devices of a container', () => {
  const SOURCE = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode';
  it.each<[VolumeDevice[], ...string[]]>([
    [[device(), device({ name: 'scratch', devicePath: '/dev/y' })]],
    [[device({ name: 'a' })], `devices[0].name: Invalid value: "a": ${SOURCE}`],
    [[device({ name: 'none' })], 'devices[0].name: Not found: "none"'],
    [[device({ name: '' })], 'devices[0].name: Required value', 'devices[0].name: Not found: ""'],
    [[device({ devicePath: '' })], 'devices[0].devicePath: Required value'],
    [[device(), device({ devicePath: '/dev/y' })], 'devices[1].name: Invalid value: "claim": must be unique'],
    [[device(), device({ name: 'scratch' })], 'devices[1].devicePath: Invalid value: "/dev/x": must be unique'],
    [
      [device({ devicePath: '/dev/..' }), device({ name: 'scratch', devicePath: '/dev/..' })],
      'devices[0].devicePath: Invalid value: "/dev/..": can not contain backsteps (\'..\')',
      'devices[1].devicePath: Invalid value: "/dev/..": can not contain backsteps (\'..\')',
    ],
  ])('the errors in the devices %j are reported', (volumeDevices, ...errors) => {
    expect(deviceErrors({ volumeDevices })).toEqual(errors);
  });
});

describe('a container with mounts and devices', () => {
  it.each<[string, VolumeMount, string[], string[]]>([
    ['a device and a mount of different volumes at different paths are valid', mount(), [], []],
    [
      'a volume cannot be mounted and used as a device',
      mount({ name: 'claim' }),
      ['mounts[0].name: Invalid value: "claim": must not already exist in volumeDevices'],
      ['devices[0].name: Invalid value: "claim": must not already exist in volumeMounts'],
    ],
    [
      'a device and a mount cannot have the same path',
      mount({ mountPath: '/dev/x' }),
      ['mounts[0].mountPath: Invalid value: "/dev/x": must not already exist as a path in volumeDevices'],
      ['devices[0].devicePath: Invalid value: "/dev/x": must not already exist as a path in volumeMounts'],
    ],
  ])('%s', (_, given, ofMounts, ofDevices) => {
    const container = { volumeMounts: [given], volumeDevices: [device()] };
    expect(mountErrors(container)).toEqual(ofMounts);
    expect(deviceErrors(container)).toEqual(ofDevices);
  });
});

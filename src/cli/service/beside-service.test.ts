import { expect, test } from 'vitest';
import { besideService } from './beside-service.ts';

const REMEDY =
  "'sudo lifepod up --install-service --data-dir /d' lets the service run the engine, which leaves its Pods running";
const beside = (service?: Parameters<typeof besideService>[3]) => besideService('/d', 7, { SUDO_UID: '1000' }, service);

test('an engine beside an installed service is reported with the command that lets the service run the engine', () => {
  expect(beside({ state: 'stopped', pid: 0 })).toEqual({
    text: `the installed service lifepod does not run this engine (PID 7): ${REMEDY}`,
    fails: false,
  });
  for (const service of [{ state: 'failing', pid: 0 } as const, { state: 'starting', pid: 8 } as const])
    expect(beside(service)).toEqual({
      text: `systemd restarts the service lifepod in vain, because an engine that it does not run (PID 7) uses the data folder: ${REMEDY}`,
      fails: true,
    });
});

test('nothing is reported about an engine that the service runs, or without a service', () => {
  expect(beside({ state: 'starting', pid: 7 })).toBeUndefined();
  expect(beside({ state: 'running', pid: 7 })).toBeUndefined();
  expect(beside()).toBeUndefined();
});

import { expect, it } from 'vitest';
import { created, headings, row, updated } from '../../../testing.ts';
import { runtimeClassKind } from './index.ts';

it('the handler, overhead and tolerations of a RuntimeClass are validated', () => {
  expect(created(runtimeClassKind, { handler: 'runc', overhead: { podFixed: { cpu: '10m' } } }).errors).toEqual([]);
  const bad = {
    handler: 'Not A Name',
    overhead: { podFixed: { cpu: '-1' } },
    scheduling: { tolerations: [{ operator: 'Sometimes' }] },
  };
  const { errors } = created(runtimeClassKind, bad);
  expect([...new Set(errors.map((error) => error.split(':')[0]))]).toEqual([
    'handler',
    'overhead.podFixed[cpu]',
    'scheduling.tolerations[0].operator',
  ]);
});

it('a RuntimeClass may not contain a toleration twice', () => {
  const tolerations = [
    { key: 'a', operator: 'Exists', effect: 'NoExecute' },
    { key: 'a', operator: 'Exists' },
    { key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 },
  ];
  expect(created(runtimeClassKind, { handler: 'runc', scheduling: { tolerations } }).errors).toEqual([
    'scheduling.tolerations[2]: Duplicate value: {"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}',
  ]);
});

it('the handler of a RuntimeClass is immutable', () => {
  const before = { handler: 'runc' };
  expect(updated(runtimeClassKind, before, { handler: 'crun' }).errors).toEqual([
    'handler: Invalid value: "crun": field is immutable',
  ]);
});

it('the table of RuntimeClasses shows name, handler and age', () => {
  expect(headings(runtimeClassKind)).toEqual({ narrow: 'NAME | HANDLER | AGE', all: 'NAME | HANDLER | AGE' });
  expect(row(runtimeClassKind, { handler: 'runc' })).toContain('runc');
});

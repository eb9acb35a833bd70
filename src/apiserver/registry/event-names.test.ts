/** Events have few validation rules of their own, but their names must be valid in URL paths and in keys of the store. */
import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../machinery/meta.ts';
import { failure, object, ref, startRegistry } from './testing.ts';

const EVENTS = ref('events');
const event = (metadata: object): KubeObject =>
  object('Event', '', { involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' } }, metadata);

describe('an Event', () => {
  test.each<[string, string]>([
    ['a/b', "may not contain '/'"],
    ['a%b', "may not contain '%'"],
    ['.', "may not be '.'"],
    ['..', "may not be '..'"],
    ['a\0b', 'may contain only ASCII characters other than NUL'],
    ['é', 'may contain only ASCII characters other than NUL'],
    ['x'.repeat(1500), 'must be no more than 900 characters'],
  ])('an Event cannot have the name %j', async (name, text) => {
    const { registry } = await startRegistry();
    expect(await failure(registry.create(EVENTS, 'default', event({ name })))).toEqual({
      code: 422,
      reason: 'Invalid',
      message: `Event ${JSON.stringify(name)} is invalid: metadata.name: Invalid value: ${JSON.stringify(name)}: ${text}`,
    });
  });

  test.each(['a/', 'a%', 'é', '\0'])('an Event cannot have the generateName %j', async (generateName) => {
    const { registry } = await startRegistry();
    const { code, message } = await failure(registry.create(EVENTS, 'default', event({ generateName })));
    expect(code).toBe(422);
    expect(message).toContain('metadata.name: Invalid value: ');
  });

  test('an Event can have any name and generateName that are valid in a URL path', async () => {
    const { registry } = await startRegistry();
    for (const name of ['My_Pod:1 started', '...', 'x'.repeat(900)]) {
      await registry.create(EVENTS, 'default', event({ name }));
      expect((await registry.get(EVENTS, 'default', name)).metadata.name).toBe(name);
    }
    for (const generateName of ['.', 'Pod-', 'x'.repeat(1500)]) {
      const { metadata } = await registry.create(EVENTS, 'default', event({ generateName }));
      expect(metadata.name.startsWith(generateName.slice(0, 58))).toBe(true);
    }
  });

  test('the labels of an Event are validated like those of any object', async () => {
    const { registry } = await startRegistry();
    const { message } = await failure(registry.create(EVENTS, 'default', event({ name: 'a', labels: { a: '-' } })));
    expect(message).toContain('metadata.labels: Invalid value: "-"');
  });
});

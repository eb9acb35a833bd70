/**
 * The server must refuse requests in which a name, a namespace, a patch operation or a precondition has the wrong type, such as an object
 * that JavaScript cannot convert to a string.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CONFIG_MAPS, startHostileServer } from './hostile-fixture.ts';
import type { TestServer } from './server-fixture.ts';

let at: TestServer;
beforeAll(async () => {
  at = await startHostileServer();
  await at.call('POST', CONFIG_MAPS, { body: JSON.stringify({ metadata: { name: 'one' } }) });
});
afterAll(() => at[Symbol.asyncDispose]());

const ONE = `${CONFIG_MAPS}/one`;
const odd = { toString: 1 };
const nameError =
  /^ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal object into Go struct field ObjectMeta\.metadata\.name(space)? of type string$/;
const patchError =
  /^ "" is invalid: patch: Invalid value: "map\[.*\]": json: cannot unmarshal object into Go struct field ObjectMeta\.metadata\.name(space)? of type string$/;

test.each<[string, string, string, unknown, number, RegExp]>([
  ['POST', CONFIG_MAPS, 'application/json', { metadata: { name: odd } }, 400, nameError],
  ['POST', CONFIG_MAPS, 'application/json', { metadata: { name: 'a', namespace: odd } }, 400, nameError],
  ['PUT', ONE, 'application/json', { metadata: { name: odd } }, 400, nameError],
  ['PUT', ONE, 'application/json', { metadata: { name: 'one', namespace: odd } }, 400, nameError],
  ['PATCH', ONE, 'application/merge-patch+json', { metadata: { name: odd } }, 422, patchError],
  ['PATCH', ONE, 'application/strategic-merge-patch+json', { metadata: { namespace: odd } }, 422, patchError],
  ['PATCH', ONE, 'application/json-patch+json', [{ op: odd, path: '/a' }], 422, /^the server rejected our request/],
])('%s %s with the content type %s refuses the body %j', async (method, path, type, body, code, message) => {
  const { json } = await at.call(method, path, { body: JSON.stringify(body), headers: { 'content-type': type } });
  expect(json).toMatchObject({ code, message: expect.stringMatching(message) });
  expect(at.errors).toEqual([]);
});

test('a precondition of the wrong type is refused, not ignored', async () => {
  const body = JSON.stringify({ kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid: 7 } });
  const { json } = await at.call('DELETE', ONE, { body, headers: { 'content-type': 'application/json' } });
  expect(json).toMatchObject({
    code: 400,
    message:
      'DeleteOptions in version "v1" cannot be handled as a DeleteOptions: json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of type types.UID',
  });
  expect((await at.call('GET', ONE)).code).toBe(200);
});

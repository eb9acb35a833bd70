import { expect, test } from 'vitest';
import { fewKinds } from '../server-fixture.ts';
import { documentsOf } from './documents.ts';

test('a document can be requested again after its descriptions could not be read', async () => {
  let isMissing = true;
  const read = async (): Promise<Buffer> => {
    if (isMissing) throw new Error('missing');
    return Buffer.from('{}');
  };
  const { hash, v2, v3 } = documentsOf(fewKinds, '0.0.0', read);
  const requests = [() => hash(), () => hash('api/v1'), () => v2('json'), () => v3('api/v1')];
  for (const request of requests) await expect(request()).rejects.toThrow('missing');
  isMissing = false;
  for (const request of requests) await expect(request()).resolves.not.toHaveLength(0);
});

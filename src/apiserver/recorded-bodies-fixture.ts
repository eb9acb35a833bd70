/** The requests of real clients that test/clients/bodies/record.ts has recorded. */

import { readFileSync, writeFileSync } from 'node:fs';
import { createTokenIssuer, type TokenIssuer } from './pki/tokens.ts';
import { startRegistry } from './registry/testing.ts';
import { startTestServer, type TestServer } from './server-fixture.ts';

export interface RecordedRequest {
  /** The command, or the call of the client library. */
  command: string;
  method: string;
  /** Includes the query. */
  path: string;
  type: string;
  /** In base64 if the type is protobuf. */
  body: string;
  code: number;
  /** The object of a protobuf body, as the client writes it in JSON. Absent for other bodies. */
  object?: object;
}

const FILE = new URL('../../test/clients/bodies/recorded.json', import.meta.url);

/** The requests by client, in the order in which the client has sent them. */
export const recordedRequests: Readonly<Record<string, readonly RecordedRequest[]>> = JSON.parse(
  readFileSync(FILE, 'utf8'),
);

export function writeRecorded(client: string, requests: readonly RecordedRequest[]): void {
  const lines = Object.entries({ ...recordedRequests, [client]: requests }).map(
    ([name, each]) => `${JSON.stringify(name)}: [\n${each.map((one) => JSON.stringify(one)).join(',\n')}\n]`,
  );
  writeFileSync(FILE, `{\n${lines.join(',\n')}\n}\n`);
}

export async function startRecordedServer(): Promise<TestServer> {
  let issuer: TokenIssuer | undefined;
  const { backend } = await startRegistry({
    issueToken: (...account) => {
      if (issuer === undefined) throw new Error('the server has not started');
      return issuer.issue(...account);
    },
  });
  const at = await startTestServer({ backend });
  issuer = createTokenIssuer(at.pki, 'https://kubernetes.default.svc.cluster.local', () => Date.now());
  return at;
}

import { expect, test } from 'vitest';
import { META } from '../../api/facts/facts.ts';
import { decodeProtobuf } from './decode.ts';
import { type Field, message, wrapped } from './message-fixture.ts';

const decode = (bytes: Uint8Array, type = 'io.k8s.api.core.v1.Pod') => decodeProtobuf(bytes, () => type);

test('the protobuf decoder decodes a Pod with maps, lists, embedded messages, times and quantities, and omits zero values', () => {
  const pod = wrapped('v1', 'Pod', [
    [
      1,
      [
        [1, 'web'],
        [3, ''],
        [8, [[1, 1769851800]]],
        [
          11,
          [
            [1, 'app'],
            [2, 'web'],
          ],
        ],
        [
          11,
          [
            [1, 'empty'],
            [2, ''],
          ],
        ],
        [15, []],
      ],
    ],
    [
      2,
      [
        [
          1,
          [
            [1, 'scratch'],
            [2, [[2, []]]],
          ],
        ],
        [
          1,
          [
            [1, 'settings'],
            [
              2,
              [
                [
                  19,
                  [
                    [1, [[1, 'one']]],
                    [3, 420],
                  ],
                ],
              ],
            ],
          ],
        ],
        [
          2,
          [
            [1, 'web'],
            [
              6,
              [
                [1, ''],
                [2, 0],
                [3, 80],
              ],
            ],
            [
              8,
              [
                [
                  2,
                  [
                    [1, 'cpu'],
                    [2, [[1, '500m']]],
                  ],
                ],
              ],
            ],
            [
              10,
              [
                [
                  1,
                  [
                    [
                      2,
                      [
                        [1, '/'],
                        [
                          2,
                          [
                            [1, 1],
                            [2, 0],
                            [3, 'http'],
                          ],
                        ],
                      ],
                    ],
                  ],
                ],
                [2, 0],
                [4, 5],
              ],
            ],
            [
              15,
              [
                [4, 0],
                [6, false],
              ],
            ],
          ],
        ],
        [4, 0],
        [21, false],
        [99, 'a field of a later version'],
      ],
    ],
    [3, []],
  ]);
  expect(decode(pod)).toEqual({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web',
      creationTimestamp: '2026-01-31T09:30:00Z',
      labels: { app: 'web', empty: '' },
      ownerReferences: undefined,
    },
    spec: {
      volumes: [
        { name: 'scratch', emptyDir: {} },
        { name: 'settings', configMap: { name: 'one', defaultMode: 420 } },
      ],
      containers: [
        {
          name: 'web',
          ports: [{ containerPort: 80 }],
          resources: { requests: { cpu: '500m' } },
          livenessProbe: { httpGet: { path: '/', port: 'http' }, periodSeconds: 5 },
          securityContext: { runAsUser: 0, readOnlyRootFilesystem: false },
        },
      ],
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
    },
  });
});

test('the protobuf decoder decodes negative numbers, and returns bytes in base64', () => {
  const secret = wrapped('v1', 'Secret', [
    [1, [[1, 'one']]],
    [
      2,
      [
        [1, 'password'],
        [2, new Uint8Array([0, 255, 16])],
      ],
    ],
  ]);
  expect(decode(secret, 'io.k8s.api.core.v1.Secret')).toMatchObject({ data: { password: 'AP8Q' } });
  const options = wrapped('v1', 'DeleteOptions', [[1, -1]]);
  expect(decode(options, `${META}.DeleteOptions`)).toMatchObject({ gracePeriodSeconds: -1 });
});

test('the protobuf decoder decodes only apiVersion and kind of an unexpected kind', () => {
  const pod = wrapped('v1', 'Pod', [[1, [[1, 'web']]]]);
  expect(decodeProtobuf(pod, () => undefined)).toEqual({ apiVersion: 'v1', kind: 'Pod' });
});

test('the protobuf decoder refuses a body that is not the protobuf encoding of an object', () => {
  expect(() => decode(Buffer.from('{"kind":"Pod"}'))).toThrow(/magic/);
  expect(() => decode(Buffer.from('k8s\0\xff\xff\xff', 'latin1'))).toThrow();
  expect(() => decode(wrapped('v1', 'Pod', [[1, new Uint8Array([0x0a, 0x7f])]]))).toThrow();
});

test('the protobuf decoder refuses a list of more than 300,000 elements', () => {
  const container = message([[2, new Uint8Array()]]);
  const containers = Buffer.concat(Array.from({ length: 300_001 }, () => container));
  expect(() => decode(wrapped('v1', 'Pod', [[2, containers]]))).toThrow('the object has more than 300000 values');
});

test('the protobuf decoder counts the values of all lists, maps and messages of a body together', () => {
  const tooMany = 'the object has more than 300000 values';
  const repeated = (field: number, content: Uint8Array, times: number): Buffer =>
    Buffer.concat(Array.from({ length: times }, () => message([[field, content]])));
  const empty = new Uint8Array();
  const manyArguments = repeated(2, repeated(4, empty, 1000), 301);
  expect(() => decode(wrapped('v1', 'Pod', [[2, manyArguments]]))).toThrow(tooMany);
  const manySpecs = Array.from({ length: 300_001 }, (): Field => [2, empty]);
  expect(() => decode(wrapped('v1', 'Pod', manySpecs))).toThrow(tooMany);
  const manyLabels = repeated(11, empty, 300_001);
  expect(() => decode(wrapped('v1', 'Pod', [[1, manyLabels]]))).toThrow(tooMany);
});

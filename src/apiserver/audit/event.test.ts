import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type AuditEvent, jsonText, legacyText } from './event.ts';

const AT = Date.parse('2026-01-31T09:30:00.123Z');
const event: AuditEvent = {
  auditID: 'id',
  level: 'RequestResponse',
  stage: 'ResponseComplete',
  requestURI: '/api/v1/namespaces/n/pods/p?x=1',
  verb: 'patch',
  user: { name: 'jane', uid: '7', groups: ['a', 'b'], extra: { scope: ['x'] } },
  impersonatedUser: { name: 'joe', groups: [] },
  sourceIPs: ['192.0.2.1'],
  userAgent: 'kubectl\u0007"',
  objectRef: { resource: 'pods', namespace: 'n', name: 'p', apiVersion: 'v1' },
  responseStatus: { code: 200 },
  requestObject: '{"a":1}',
  responseObject: '{"b":2}',
  received: AT + 0.25,
  at: AT + 1.5,
  annotations: new Map([
    ['b', 'B'],
    ['a', 'A'],
  ]),
};
const smallest: AuditEvent = {
  auditID: 'id',
  level: 'Metadata',
  stage: 'RequestReceived',
  requestURI: '/',
  verb: 'get',
  received: AT,
  at: AT,
  annotations: new Map(),
};

test('an event has the fields of audit.k8s.io/v1 in the order of upstream', () => {
  expect(jsonText(event)).toBe(
    '{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"id","stage":"ResponseComplete",' +
      '"requestURI":"/api/v1/namespaces/n/pods/p?x=1","verb":"patch",' +
      '"user":{"username":"jane","uid":"7","groups":["a","b"],"extra":{"scope":["x"]}},"impersonatedUser":{"username":"joe"},' +
      '"sourceIPs":["192.0.2.1"],"userAgent":"kubectl\\u0007\\"",' +
      '"objectRef":{"resource":"pods","namespace":"n","name":"p","apiVersion":"v1"},' +
      '"responseStatus":{"metadata":{},"code":200},"requestObject":{"a":1},"responseObject":{"b":2},' +
      '"requestReceivedTimestamp":"2026-01-31T09:30:00.123250Z","stageTimestamp":"2026-01-31T09:30:00.124500Z",' +
      '"annotations":{"a":"A","b":"B"}}',
  );
});

test('an event without a user, an object or a response lacks their fields', () => {
  expect(JSON.parse(jsonText(smallest))).toEqual({
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: 'id',
    stage: 'RequestReceived',
    requestURI: '/',
    verb: 'get',
    user: {},
    requestReceivedTimestamp: '2026-01-31T09:30:00.123000Z',
    stageTimestamp: '2026-01-31T09:30:00.123000Z',
  });
});

test('the value of an annotation is limited', () => {
  const long = { ...smallest, annotations: new Map([['a', 'x'.repeat(20_000)]]) };
  expect(JSON.parse(jsonText(long)).annotations.a).toHaveLength(16_384);
});

test('the legacy format names the same facts in one line', () => {
  expect(legacyText(event)).toBe(
    '2026-01-31T09:30:00.123250Z AUDIT: id="id" stage="ResponseComplete" ip="192.0.2.1" method="patch" user="jane" ' +
      'groups="a","b" as="joe" asgroups=<none> user-agent="kubectl\\u0007\\"" namespace="n" ' +
      'uri="/api/v1/namespaces/n/pods/p?x=1" response="200"',
  );
  expect(legacyText(smallest)).toBe(
    '2026-01-31T09:30:00.123000Z AUDIT: id="id" stage="RequestReceived" ip="<unknown>" method="get" user="<none>" ' +
      'groups=<none> as="<none>" asgroups=<none> user-agent="" namespace="<none>" uri="/" response="<deferred>"',
  );
});

test('whatever texts an event contains, it is one line of JSON with these texts', () => {
  const text = fc.string({ unit: 'binary', minLength: 1 });
  const texts = fc.record({
    auditID: text,
    requestURI: text,
    verb: text,
    user: fc.record({ name: text, groups: fc.array(text), extra: fc.dictionary(text, fc.array(text)) }),
    sourceIPs: fc.array(text),
    userAgent: text,
    objectRef: fc.record({ namespace: text, name: text }),
    annotations: fc.dictionary(text, text).map((entries) => new Map(Object.entries(entries))),
  });
  fc.assert(
    fc.property(texts, fc.json(), (fields, object) => {
      const requestObject = JSON.stringify(JSON.parse(object));
      const whole = { ...smallest, ...fields, requestObject };
      const line = jsonText(whole);
      expect(line).not.toMatch(/[\n\r]/);
      expect(legacyText(whole)).not.toMatch(/[\n\r]/);
      // Lone surrogates are not valid in UTF-8, in which the line is written.
      expect(Buffer.from(line).toString()).toBe(line);
      const { userAgent, objectRef, annotations = {} } = JSON.parse(line);
      expect({ userAgent, objectRef, annotations }).toEqual({
        userAgent: fields.userAgent,
        objectRef: fields.objectRef,
        annotations: Object.fromEntries(fields.annotations),
      });
    }),
    { seed: Number(process.env['LIFEPOD_SEED']) },
  );
});

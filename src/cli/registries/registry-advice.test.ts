import { expect, test } from 'vitest';
import type { Pod, Secret } from '../../api/generated/types.ts';
import { hintsFor } from '../hints.ts';
import { registryAdvice } from './registry-advice.ts';

const HINTS = hintsFor({}, {});
const answers = (text: string): string =>
  `pulling from host localhost:5101 failed with status code [manifests 1]: ${text}`;
const UNAUTHORIZED = answers('401 Unauthorized');

const podWith = (...names: string[]): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'n' },
  spec: { containers: [], imagePullSecrets: names.map((name) => ({ name })) },
});
const secretFor = (name: string, registry: string): Secret => {
  const config = JSON.stringify({ auths: { [registry]: { username: 'u', password: 'p' } } });
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'n' },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(config).toString('base64') },
  };
};
const adviceFor = (pod: Pod, pullSecrets?: Secret[], message = UNAUTHORIZED, image = 'localhost:5101/x:1') =>
  registryAdvice({ pod, hints: HINTS, pullSecrets }, image, message);

test.each<[string, Pod, Secret[] | undefined, RegExp, RegExp?]>([
  [
    'no pull secret',
    podWith(),
    [],
    /^it needs credentials: create a Secret/,
    /secret docker-registry NAME -n n .*=localhost:5101/,
  ],
  [
    'a pull secret that does not exist',
    podWith('absent', 'a'),
    [secretFor('a', 'localhost:5101')],
    /^the Secret absent of its imagePullSecrets does not exist in namespace n: create it/,
    /secret docker-registry absent -n n /,
  ],
  [
    'a pull secret for another registry',
    podWith('a'),
    [secretFor('a', 'localhost:5102')],
    /^none of its imagePullSecrets \(a\) has an entry for localhost:5101: add one/,
  ],
  [
    'a wrong password',
    podWith('a'),
    [secretFor('a', 'localhost:5101')],
    /^localhost:5101 refuses the user or password in its imagePullSecrets \(a\)/,
  ],
  [
    'pull secrets that are not known',
    podWith('a', 'b'),
    undefined,
    /^check that its imagePullSecrets \(a, b\) exist, and that one has an entry for localhost:5101/,
  ],
  [
    'a static Pod',
    { ...podWith(), metadata: { name: 'p', annotations: { 'kubernetes.io/config.mirror': 'u' } } },
    [],
    /^it needs credentials, and the manifest of a static Pod cannot name a Secret/,
  ],
  [
    'a name that a shell would not take as one word',
    podWith('a;b'),
    [],
    /^it needs credentials/,
    /docker-registry NAME /,
  ],
])('a registry that needs credentials gets advice for %s', (_, pod, secrets, description, command) => {
  const advice = adviceFor(pod, secrets);
  expect(advice?.description).toMatch(description);
  if (command === undefined) expect(advice?.command).toBeUndefined();
  else expect(advice?.command).toMatch(command);
});

test.each([
  [
    'pull access denied, repository does not exist or may require authorization',
    /^check the name; if it is right, it needs credentials/,
  ],
  [answers('403 Forbidden'), /^check the name, and whether the user /],
  [
    'failed to fetch anonymous token: unexpected status from GET request to https://gitlab.example/jwt/auth: 403 Forbidden',
    /^check the name; if it is right, it needs credentials/,
  ],
  [answers('429 Too Many Requests'), /^wait: localhost:5101 limits/],
  [answers('500 Internal Server Error'), /^see the log of the registry localhost:5101, which answers/],
  [
    answers('400 Bad Request'),
    /^if the registry speaks TLS, name https:\/\/localhost:5101 .* certs\.d\/localhost:5101\/hosts\.toml/,
  ],
  ['Head "http://localhost:5101/v2/": EOF', /^if the registry speaks TLS, /],
  [
    'Head "https://localhost:5101/v2/": http: server gave HTTP response to HTTPS client',
    /^the registry does not speak TLS: name http:/,
  ],
  [
    'tls: failed to verify certificate: x509: certificate signed by unknown authority',
    /^name the certificate authority/,
  ],
])('a registry that does not serve an image gets advice: %s', (message, description) => {
  expect(adviceFor(podWith(), [], message)?.description).toMatch(description);
});

test.each([
  ['an image that does not exist', 'localhost:5101/x:1: not found', 'localhost:5101/x:1'],
  ['a registry that cannot be reached', 'dial tcp 127.0.0.1:5101: connect: connection refused', 'localhost:5101/x:1'],
  ['a name that is not valid', UNAUTHORIZED, 'a;b/x'],
])('there is no advice about the answer of a registry for %s', (_, message, image) => {
  expect(adviceFor(podWith(), [], message, image)).toBeUndefined();
});

/** Says what the user can do if a registry answers, but does not serve an image. Pure. */
import { isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import type { Pod, Secret } from '../../api/generated/types.ts';
import { dns1123SubdomainErrors } from '../../machinery/names.ts';
import { credentialsFor } from '../../node/images/credentials.ts';
import { referenceError, repositoryOf } from '../../runtime/images/references.ts';
import type { Hints } from '../hints.ts';
import { type Action, listed } from '../why/subject.ts';
import { registryProblem } from './registry-problem.ts';

export interface PullOfPod {
  pod: Pod;
  hints: Hints;
  /** The imagePullSecrets of the Pod that exist; undefined if they are not known. */
  pullSecrets?: readonly Secret[] | undefined;
}

/** Returns the valid names of the imagePullSecrets. The API does not validate these names, and a command must not contain others. */
export const pullSecretsOf = ({ spec }: Pod): string[] => [
  ...new Set(
    (spec?.imagePullSecrets ?? []).flatMap(({ name = '' }) => (dns1123SubdomainErrors(name).length === 0 ? name : [])),
  ),
];

/**
 * Returns what the user can do about a failed pull of the image `reference`. `message`: the message of the pull. Returns undefined if the
 * registry did not answer, or lacks the image.
 */
export function registryAdvice(pull: PullOfPod, reference: string, message: string | undefined): Action | undefined {
  if (referenceError(reference) !== undefined) return undefined;
  const [registry = ''] = repositoryOf(reference).split('/');
  const file = `certs.d/${registry}/hosts.toml in the data folder (see README.md)`;
  switch (registryProblem(message)?.cause) {
    case 'tls':
      return {
        description: `if the registry speaks TLS, name https://${registry} and its certificate authority in ${file}: without it, a registry on loopback is asked with plain HTTP; if the file does so already, check the name of the image`,
      };
    case 'plain':
      return { description: `the registry does not speak TLS: name http://${registry} in ${file}` };
    case 'certificate':
      return { description: `name the certificate authority of the registry (ca) in ${file}` };
    case 'credentials':
      return credentials(pull, reference, registry);
    case 'denied': {
      const { description, ...command } = credentials(pull, reference, registry);
      return { description: `check the name; if it is right, ${description}`, ...command };
    }
    case 'forbidden':
      return {
        description: `check the name, and whether the user in the imagePullSecrets of the Pod may pull it from ${registry}`,
      };
    case 'limit':
      return {
        description: `wait: ${registry} limits the number of requests, and the pull is repeated; imagePullSecrets may raise the limit`,
      };
    case 'error':
      return {
        description: `see the log of the registry ${registry}, which answers with an error: the pull is repeated`,
      };
    default:
      return undefined;
  }
}

function credentials({ pod, hints, pullSecrets }: PullOfPod, reference: string, registry: string): Action {
  if (isMirrorPod(pod))
    return {
      description:
        'it needs credentials, and the manifest of a static Pod cannot name a Secret: load the image from an archive, or create the Pod with kubectl instead',
    };
  const names = pullSecretsOf(pod);
  const create = (name: string): string =>
    hints.kubectl(
      `create secret docker-registry ${name} -n ${pod.metadata.namespace} --docker-server=${registry} --docker-username=USER --docker-password=PASSWORD`,
    );
  if (names.length === 0)
    return {
      description:
        'it needs credentials: create a Secret with them, and recreate the Pod with the name of the Secret in spec.imagePullSecrets',
      command: create('NAME'),
    };
  const secrets = `its imagePullSecrets (${names.join(', ')})`;
  if (pullSecrets === undefined)
    return {
      description: `check that ${secrets} exist, and that one has an entry for ${registry} with a valid user and password`,
    };
  const missing = names.filter((name) => !pullSecrets.some(({ metadata }) => metadata.name === name));
  if (missing.length > 0)
    return {
      description: `the Secret ${listed(missing)} of its imagePullSecrets does not exist in namespace ${pod.metadata.namespace}: create it, and the pull is repeated`,
      command: create(missing[0] ?? ''),
    };
  return {
    description: hasEntry(reference, pullSecrets)
      ? `${registry} refuses the user or password in ${secrets}: correct them, and the pull is repeated`
      : `none of ${secrets} has an entry for ${registry}: add one, and the pull is repeated`,
  };
}

/** Returns whether a Secret has credentials for the image; true for a Secret that cannot be parsed, which has an error of its own. */
function hasEntry(reference: string, secrets: readonly Secret[]): boolean {
  try {
    return credentialsFor(repositoryOf(reference), secrets).length > 0;
  } catch {
    return true;
  }
}

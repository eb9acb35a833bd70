/**
 * Defines the option of `lifepod up` for encryption at rest, which has the name of kube-apiserver's option.
 * Source: k8s.io/apiserver/pkg/server/options/etcd.go of v1.33.
 */
import { resolve } from 'node:path';

export interface EncryptionOptions {
  /** The path of an EncryptionConfiguration. If it is empty, lifepod uses a key of its own in the data folder. */
  encryptionProviderConfig?: string;
}

export const ENCRYPTION_FLAG = '--encryption-provider-config';
export const ENCRYPTION_DESCRIPTION =
  "EncryptionConfiguration with the keys that encrypt objects in the store; '' returns to the default (default: a key in the data folder, for Secrets)";

/** Returns the value from `options`, else from `record`, else the default; a relative path becomes absolute. */
export function resolveEncryptionOptions(
  options: EncryptionOptions,
  record: EncryptionOptions = {},
): Required<EncryptionOptions> {
  const path = options.encryptionProviderConfig ?? record.encryptionProviderConfig ?? '';
  return { encryptionProviderConfig: path === '' ? '' : resolve(path) };
}

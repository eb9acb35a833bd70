import type { KubeObject } from '../../machinery/meta.ts';
import type { WriteOptions } from '../../ports/backend.ts';
import type { AdmissionRequest, Operation } from '../admission/plugin.ts';
import type { Sent } from './context.ts';
import type { Resource } from './resources.ts';

interface Write {
  operation: Operation;
  subresource?: string | undefined;
  namespace: string | undefined;
  name: string;
  object?: KubeObject;
  old?: KubeObject;
}

export const admissionRequest = (
  { kind, groupResource }: Resource,
  { operation, subresource = '', namespace = '', name, object, old }: Write,
  { request, dryRun, onWarning }: Sent<WriteOptions>,
): AdmissionRequest => ({
  kind,
  groupResource,
  operation,
  subresource,
  namespace,
  name,
  object,
  old,
  context: request,
  dryRun: dryRun === true,
  warn: (text) => onWarning?.(text),
});

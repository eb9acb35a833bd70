/**
 * The envelope of every object: four magic bytes, and a runtime.Unknown with the apiVersion and kind of the object and its encoding.
 * Source: runtime.Unknown of k8s.io/apimachinery v1.33.
 */

export const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf';

export const MAGIC: Uint8Array = Buffer.from('k8s\0');

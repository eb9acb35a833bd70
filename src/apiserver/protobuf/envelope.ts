/**
 * The envelope of every object in protobuf: four magic bytes, and a runtime.Unknown with the apiVersion and kind of the object and its
 * encoding.
 * Source: runtime.Unknown of k8s.io/apimachinery v1.33.
 */

export const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf';

/** The bytes before the runtime.Unknown: k8s and a zero byte. */
export const MAGIC: Uint8Array = Buffer.from('k8s\0');

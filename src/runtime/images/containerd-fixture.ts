/** A fake containerd that stores only the names of images. */
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import { type Connection, hasCode, RuntimeCallError } from '../cri/connection.ts';
import { serviceOf } from '../cri/definitions.ts';
import { storedName } from './references.ts';

/**
 * Returns a fake containerd whose image names refer to the given digests, and whose CRI shows the same images. `calls`: the calls that
 * change something, in order. If a name gets another target, CRI shows the previous target until the ID of the new image (`sha256:` and the
 * digest) is also a name.
 */
export function containerd(names: Record<string, string>) {
  const calls: string[] = [];
  const shown = { ...names };
  const unary = async (method: string, request: unknown): Promise<unknown> => {
    const call = method.replace(/^.*\.(\w+\/\w+)$/, '$1');
    if (call === 'Images/List')
      return { images: Object.entries(names).map(([name, digest]) => ({ name, target: { digest } })) };
    if (call === 'ImageService/ListImages')
      return { images: Object.entries(names).map(([name, id]) => criImage(id, storedName(name))) };
    if (call === 'ImageService/ImageStatus') {
      const { image: name } = (request as { image: { image: string } }).image;
      const digest = names[name];
      if (digest === undefined) delete shown[name];
      else if (names[`sha256:${digest}`] !== undefined) shown[name] = digest;
      return { image: shown[name] === undefined ? null : criImage(shown[name], name) };
    }
    if (call === 'Images/Create') {
      const { name, target } = (request as { image: { name: string; target: { digest: string } } }).image;
      if (names[name] !== undefined) throw new RuntimeCallError('AlreadyExists', 'exists');
      calls.push(`assign ${name}`);
      names[name] = target.digest;
    } else if (call === 'ImageService/RemoveImage') {
      const { image: name } = (request as { image: { image: string } }).image;
      calls.push(`remove ${name}`);
      delete names[name];
    } else if (call === 'Images/Delete') {
      const { name } = request as { name: string };
      calls.push(`delete ${name}`);
      delete names[name];
    } else if (call === 'Images/Update') {
      const { name, target } = (request as { image: { name: string; target: { digest: string } } }).image;
      calls.push(`restore ${name}`);
      names[name] = target.digest;
    } else if (call === 'Leases/AddResource')
      calls.push(`hold ${(request as { resource: { id: string } }).resource.id}`);
    else calls.push(call);
    return {};
  };
  return { names, calls, connection: { unary } as unknown as Connection };
}

const criImage = (digest: string, tag: string): object => ({
  id: `sha256:${digest}`,
  repoTags: tag.includes('sha256:') ? [] : [tag],
  repoDigests: [],
  size: 1,
  uid: null,
  username: '',
  pinned: false,
});

const SERVICES = [
  'containerd.services.images.v1.Images',
  'containerd.services.leases.v1.Leases',
  'runtime.v1.ImageService',
];

function numberOf(error: unknown): status {
  if (hasCode(error, 'AlreadyExists')) return status.ALREADY_EXISTS;
  return hasCode(error, 'Unavailable') ? status.UNAVAILABLE : status.UNKNOWN;
}

type Answer = (error: { code: number; details: string } | null, response?: unknown) => void;

/**
 * Responds to each call at the socket `endpoint` with the result of `unary`. Calls `before` with the full name of the method before each
 * call. If `before` throws, the call fails with this error.
 */
export async function serveContainerd(
  endpoint: string,
  { unary }: Connection,
  before: (method: string) => void,
): Promise<{ close(): void }> {
  const server = new Server();
  const { signal } = new AbortController();
  for (const name of SERVICES) {
    const service = serviceOf(name);
    const handler = (method: string) => async (call: { request: object }, answer: Answer) => {
      try {
        before(method);
        answer(null, await unary(method, call.request, signal));
      } catch (error) {
        answer({ code: numberOf(error), details: (error as Error).message });
      }
    };
    server.addService(
      service,
      Object.fromEntries(Object.keys(service).map((method) => [method, handler(`${name}/${method}`)])),
    );
  }
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(endpoint, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
  );
  return { close: () => server.forceShutdown() };
}

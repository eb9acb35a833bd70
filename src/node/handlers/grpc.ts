/** Source: pkg/probe/grpc of v1.33 (behavior and texts). */
import { fileURLToPath } from 'node:url';
import { Client, connectivityState, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { loadSync, type MethodDefinition, type ServiceDefinition } from '@grpc/proto-loader';
import { formatDuration } from '../../machinery/time.ts';
import { DeadlineExceeded, HandlerFailure, joinHostPort } from './failure.ts';

export interface GrpcTarget {
  host: string;
  port: number;
  /** Empty: the server as a whole. */
  service: string;
  userAgent: string;
  /** Used only in messages, because the signal ends the call. */
  timeoutSeconds: number;
}

type Check = MethodDefinition<{ service: string }, { status: string }>;
let loaded: Check | undefined;

function checkMethod(): Check {
  if (loaded === undefined) {
    const types = loadSync(fileURLToPath(new URL('health.proto', import.meta.url)), { enums: String, defaults: true });
    loaded = (types['grpc.health.v1.Health'] as ServiceDefinition)['Check'] as Check;
  }
  return loaded;
}

/**
 * Resolves if the status of the service is SERVING. Rejects with a HandlerFailure if the service has another status, the call fails, or the
 * server does not answer in time, and with the signal's reason on an abort other than DeadlineExceeded.
 */
export function checkHealth(target: GrpcTarget, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const method = checkMethod();
  const client = new Client(joinHostPort(target.host, target.port), credentials.createInsecure(), {
    'grpc.primary_user_agent': target.userAgent,
    // The first two options make each call open a separate, direct connection. The others disable work that such a call does not need.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_http_proxy': 0,
    'grpc.service_config_disable_resolution': 1,
    'grpc.enable_channelz': 0,
  });
  return new Promise((resolve, reject) => {
    const cancel = (): void => call.cancel();
    const call = client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      { service: target.service },
      // Retry refused connections until the deadline, because the server may not be listening yet.
      new Metadata({ waitForReady: true }),
      (error, answer) => {
        signal.removeEventListener('abort', cancel);
        const connected = client.getChannel().getConnectivityState(false) === connectivityState.READY;
        client.close();
        if (signal.aborted && !(signal.reason instanceof DeadlineExceeded)) reject(signal.reason);
        else if (signal.aborted) reject(new HandlerFailure(lateText(target, connected)));
        else if (error !== null) reject(new HandlerFailure(errorText(error)));
        else if (answer?.status === 'SERVING') resolve();
        else reject(new HandlerFailure(`service unhealthy (responded with ${JSON.stringify(String(answer?.status))})`));
      },
    );
    signal.addEventListener('abort', cancel, { once: true });
  });
}

function lateText({ host, port, timeoutSeconds }: GrpcTarget, connected: boolean): string {
  const within = formatDuration(timeoutSeconds * 1000);
  return connected
    ? `timeout: health rpc did not complete within ${within}`
    : `timeout: failed to connect service "${joinHostPort(host, port)}" within ${within}: context deadline exceeded`;
}

function errorText({ code, details }: ServiceError): string {
  return code === status.UNIMPLEMENTED
    ? `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${details}`
    : `error: health rpc probe failed: rpc error: code = ${codeName(code)} desc = ${details}`;
}

/** Returns the name of the code in Go's notation: NotFound for NOT_FOUND. */
const codeName = (code: number): string =>
  code === status.CANCELLED
    ? 'Canceled'
    : (status[code] ?? 'UNKNOWN').toLowerCase().replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());

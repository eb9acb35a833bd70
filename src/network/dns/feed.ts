/**
 * Feeds the DNS process: sends all records on connection, and then each change.
 *
 * Invariant: the last message about an object contains its newest state. A change may be sent between the records of the first transfer, so
 * these are read immediately before they are written.
 */
import { once } from 'node:events';
import type { EndpointSlice, Namespace, Service } from '../../api/generated/types.ts';
import { ENDPOINT_SLICES, NAMESPACES, SERVICES } from '../../api/resources.ts';
import type { Informer } from '../../client/informer.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { workInTurns } from '../../platform/work-in-turns.ts';
import type { EngineMessage, PutMessage, RecordKind } from '../dns-server/protocol.ts';
import type { DnsConnection } from './process.ts';
import { namespaceRecord, serviceRecord, sliceRecord } from './records.ts';

const BATCH = 200;
/** A process that leaves more bytes unread is disconnected. On reconnection, it gets all records. */
const MAX_UNREAD_BYTES = 64 * 2 ** 20;

interface Source {
  kind: RecordKind;
  informer: Informer<KubeObject>;
  record: (object: KubeObject) => PutMessage;
}

export interface Feed {
  synced: Promise<unknown>;
  /**
   * Sends all records, and then each change, over this connection instead of the previous one. Resolves when the process has all records.
   */
  attach(connection: DnsConnection): Promise<void>;
}

export function createFeed(informers: SharedInformers, signal: AbortSignal): Feed {
  let current: DnsConnection | undefined;
  const send = (message: EngineMessage): void => {
    if (current === undefined) return;
    current.send(message);
    if (current.socket.writableLength > MAX_UNREAD_BYTES) current.socket.destroy();
  };
  const follow = <T extends KubeObject>(
    kind: RecordKind,
    resource: ResourceRef,
    record: (object: T) => PutMessage,
  ): Source => {
    const put = (object: T): void => send(record(object));
    const deleted = ({ metadata: { namespace, name = '' } }: T): void => send({ op: 'remove', kind, namespace, name });
    const informer = informers.follow<T>(resource, { signal }, { added: put, updated: put, deleted });
    return { kind, informer: informer as unknown as Informer<KubeObject>, record: record as Source['record'] };
  };
  const sources = [
    follow<Namespace>('namespace', NAMESPACES, namespaceRecord),
    follow<Service>('service', SERVICES, serviceRecord),
    follow<EndpointSlice>('slice', ENDPOINT_SLICES, sliceRecord),
  ];

  async function sendAll(connection: DnsConnection): Promise<void> {
    const { socket } = connection;
    const betweenSteps = workInTurns();
    for (const { informer, record } of sources) {
      const names = informer.list().map(({ metadata }) => metadata);
      for (let from = 0; from < names.length && !socket.destroyed; from += BATCH) {
        const lines = names.slice(from, from + BATCH).flatMap(({ namespace, name = '' }) => {
          const object = informer.get(namespace, name);
          return object === undefined ? [] : [`${JSON.stringify(record(object))}\n`];
        });
        if (!socket.write(lines.join(''))) await Promise.race([once(socket, 'drain'), connection.closed]);
        await betweenSteps();
      }
    }
  }

  return {
    synced: Promise.all(sources.map(({ informer }) => informer.synced)),
    async attach(connection) {
      current = connection;
      void connection.closed.then(() => {
        if (current === connection) current = undefined;
      });
      connection.send({ op: 'begin' });
      await sendAll(connection);
      await connection.confirmed('end');
    },
  };
}

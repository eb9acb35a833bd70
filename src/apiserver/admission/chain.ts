import type { KindDefinition } from '../../api/kind.ts';
import type { Compare } from '../../store/store.ts';
import type { AdmissionPlugin, AdmissionRequest, AdmissionTarget, Alongside, Operation } from './plugin.ts';

export type Outside = (waiting: Promise<void>) => Promise<void>;

export interface AdmissionChain {
  readonly changes: boolean;
  admit(request: AdmissionRequest, outside: Outside): Promise<void>;
  validate(request: AdmissionRequest, outside: Outside): Promise<void>;
  allocate(request: AdmissionRequest): () => void;
  guards(request: AdmissionRequest): Compare[];
  alongside(request: AdmissionRequest): Alongside[];
}

export interface Admission {
  chainFor(kind: KindDefinition, subresource: string | undefined, operation: Operation): AdmissionChain | undefined;
}

export function createAdmission(plugins: readonly AdmissionPlugin[]): Admission {
  const chains = new WeakMap<KindDefinition, Map<string, AdmissionChain | undefined>>();
  return {
    chainFor(kind, subresource = '', operation) {
      const ofKind = chains.get(kind) ?? new Map<string, AdmissionChain | undefined>();
      chains.set(kind, ofKind);
      const key = `${operation} ${subresource}`;
      if (!ofKind.has(key)) ofKind.set(key, chainOf(plugins, { kind, subresource, operation }));
      return ofKind.get(key);
    },
  };
}

async function stillWanted({ context, object, old }: AdmissionRequest, waiting: Promise<void>): Promise<void> {
  const kept = [object, old].filter((each) => each !== undefined);
  await (context.outside?.(waiting, kept) ?? waiting);
  context.signal.throwIfAborted();
}

function chainOf(all: readonly AdmissionPlugin[], target: AdmissionTarget): AdmissionChain | undefined {
  const plugins = all.filter((plugin) => plugin.handles(target));
  if (plugins.length === 0) return undefined;
  const guarding = plugins.filter(({ guards }) => guards !== undefined);
  const writing = plugins.filter(({ alongside }) => alongside !== undefined);
  return {
    changes: plugins.some(({ admit }) => admit !== undefined),
    async admit(request, outside) {
      for (const plugin of plugins) {
        const checking = plugin.check?.(request);
        if (checking !== undefined) await stillWanted(request, outside(checking));
        const waiting = plugin.admit?.(request);
        if (waiting !== undefined) await stillWanted(request, outside(waiting));
      }
    },
    async validate(request, outside) {
      for (const plugin of plugins) {
        const waiting = plugin.validate?.(request);
        if (waiting !== undefined) await stillWanted(request, outside(waiting));
      }
    },
    allocate(request) {
      const releases: (() => void)[] = [];
      const release = (): void => {
        for (const each of releases) each();
      };
      try {
        for (const plugin of plugins) {
          const ended = plugin.allocate?.(request);
          if (ended !== undefined) releases.push(ended);
        }
      } catch (error) {
        release();
        throw error;
      }
      return release;
    },
    guards: (request) => guarding.flatMap((plugin) => plugin.guards?.(request) ?? []),
    alongside: (request) => writing.flatMap((plugin) => plugin.alongside?.(request) ?? []),
  };
}

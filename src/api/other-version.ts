/**
 * Declares another version of a kind. Objects are stored in one version. The other version consists of a type, defaults, and two pure
 * functions that convert objects to the stored version and back. All other steps belong to the stored version: an object is converted
 * before each of them, as upstream converts objects to an internal version.
 *
 * Only the steps in otherVersion() are supported, because no kind with several versions needs others.
 */
import type { KubeObject } from '../machinery/meta.ts';
import { typeOfKind } from './facts/facts.ts';
import type { KindDefinition, SubresourceDefinition } from './kind.ts';

export interface OtherVersion<T extends KubeObject, S extends KubeObject> {
  /** These defaults are set before the conversion, and the defaults of the stored version after it. */
  defaults?(object: T): void;
  /**
   * Converts an object to the stored version. The result must not share parts with `object`, because the defaults of the stored version are
   * set in the result.
   */
  toStored(object: T): S;
  /** `object` is frozen. */
  fromStored(object: S): T;
}

function become<T extends KubeObject>(object: T, content: T): void {
  for (const field of Object.keys(object)) delete object[field as keyof T];
  Object.assign(object, content);
}

/** `stored`: the kind in the version in which objects are stored. `version`: the other version, such as `v1`. */
export function otherVersion<T extends KubeObject, S extends KubeObject>(
  stored: KindDefinition<S>,
  version: string,
  { defaults, fromStored, ...given }: OtherVersion<T, S>,
): KindDefinition<T> {
  const { group, kind, plural, singular, shortNames, categories, namespaced, columns } = stored;
  const toStored = (object: T): S => {
    const converted = given.toStored(object);
    stored.defaults?.(converted);
    return converted;
  };
  const subresource = ({ apply, validate, ...other }: SubresourceDefinition<S>): SubresourceDefinition<T> => ({
    verbs: other.verbs,
    apply: (old, body, context) =>
      fromStored(apply?.(toStored(old), toStored(body as T), context) ?? toStored(body as T)),
    validate: (object, old) => validate?.(toStored(object), toStored(old)) ?? [],
  });
  return {
    ...{ group, version, kind, plural, singular, shortNames, categories, namespaced, columns },
    schema: typeOfKind(group, version, kind) ?? `${group}.${version}.${kind}`,
    storage: {
      resource: { group, version: stored.version, resource: plural },
      toStored: (object) => toStored(object as T),
      fromStored: (object) => fromStored(object as S),
    },
    ...(defaults === undefined ? {} : { defaults }),
    prepareForCreate(object, context) {
      const converted = toStored(object);
      stored.prepareForCreate?.(converted, context);
      become(object, fromStored(converted));
    },
    prepareForUpdate(object, old, context) {
      const converted = toStored(object);
      stored.prepareForUpdate?.(converted, toStored(old), context);
      become(object, fromStored(converted));
    },
    validateCreate: (object) => stored.validateCreate(toStored(object)),
    validateUpdate: (object, old) => stored.validateUpdate(toStored(object), toStored(old)),
    warnings: (object, old) => stored.warnings?.(toStored(object), old === undefined ? undefined : toStored(old)) ?? [],
    subresources: Object.fromEntries(
      Object.entries(stored.subresources).map(([name, definition]) => [name, subresource(definition)]),
    ),
    row: (object, context) => stored.row(toStored(object), context),
  };
}

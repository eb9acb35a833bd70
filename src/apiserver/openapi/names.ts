/** The schemas of types that have their own JSON form instead of fields, such as times and quantities. */
import { type JsonForm, jsonForms, META } from '../../api/facts/facts.ts';

export const META_PREFIX = META;

const FORMS: Readonly<Record<JsonForm, Readonly<Record<string, unknown>>>> = {
  time: { type: 'string', format: 'date-time', description: 'A time in RFC 3339 format, in whole seconds.' },
  microTime: { type: 'string', format: 'date-time', description: 'A time in RFC 3339 format, with microseconds.' },
  duration: { type: 'string', description: 'A duration, such as 15s or 1h30m.' },
  quantity: {
    oneOf: [{ type: 'string' }, { type: 'number' }],
    description: 'An amount of a resource: a number with an optional suffix, such as 500m, 1.5 or 128Mi.',
  },
  intOrString: {
    oneOf: [{ type: 'integer' }, { type: 'string' }],
    format: 'int-or-string',
    description: 'An integer or a string, such as a port by number or by name.',
  },
  raw: { type: 'object', description: 'Any JSON value.' },
};

export const SCALAR_COMPONENTS: ReadonlyMap<string, Readonly<Record<string, unknown>>> = new Map(
  [...jsonForms].map(([name, form]) => [name, FORMS[form]]),
);

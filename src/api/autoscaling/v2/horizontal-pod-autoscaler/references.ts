/** Validation of names in references to objects and metrics. Source: pkg/apis/autoscaling/validation of v1.33 (behavior and wording). */
import { type FieldError, invalid, required } from '../../../../machinery/field-error.ts';
import { pathSegmentErrors } from '../../../../machinery/names.ts';
import type { V2CrossVersionObjectReference } from '../../../generated/types.ts';

/** `detail`: the text of the error if the name is absent. */
export const validateSegment = (name: string, path: string, detail = ''): FieldError[] =>
  name ? pathSegmentErrors(name).map((text) => invalid(path, name, text)) : [required(path, detail)];

export const validateReference = ({ kind, name }: V2CrossVersionObjectReference, path: string): FieldError[] => [
  ...validateSegment(kind, `${path}.kind`),
  ...validateSegment(name, `${path}.name`),
];

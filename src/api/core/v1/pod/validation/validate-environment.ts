/** Validates environment variables of a container. Source: validation of v1.33 (rules and wording). */
import { allErrors, type FieldError, invalid } from '../../../../../machinery/field-error.ts';
import { dns1123SubdomainErrors, envVarNameErrors } from '../../../../../machinery/names.ts';
import type { EnvFromSource, EnvVar } from '../../../../generated/types.ts';
import { validateFieldRef, validateKeyRef, validateResourceFieldRef } from './validate-references.ts';
import { nameErrors, requiredName } from './validate-values.ts';

/** `fieldPaths`: the paths of the Pod's fields to which a variable may refer. */
export const validateEnv = (
  variables: readonly EnvVar[] | undefined,
  path: string,
  fieldPaths: readonly string[],
): FieldError[] =>
  (variables ?? []).flatMap((variable, index) =>
    allErrors(
      requiredName(variable.name, `${path}[${index}].name`, envVarNameErrors),
      validateValueFrom(variable, `${path}[${index}].valueFrom`, fieldPaths),
    ),
  );

function validateValueFrom({ value, valueFrom }: EnvVar, path: string, fieldPaths: readonly string[]): FieldError[] {
  if (!valueFrom) return [];
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = valueFrom;
  const errors = allErrors(
    fieldRef ? validateFieldRef(fieldRef, `${path}.fieldRef`, fieldPaths) : [],
    resourceFieldRef ? validateResourceFieldRef(resourceFieldRef, `${path}.resourceFieldRef`, false) : [],
    configMapKeyRef ? validateKeyRef(configMapKeyRef, `${path}.configMapKeyRef`) : [],
    secretKeyRef ? validateKeyRef(secretKeyRef, `${path}.secretKeyRef`) : [],
  );
  const sources = [fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef].filter(Boolean).length;
  if (sources === 0) {
    const choices = '`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`';
    errors.push(invalid(path, '', `must specify one of: ${choices}`));
  } else if (value) {
    errors.push(invalid(path, '', 'may not be specified when `value` is not empty'));
  } else if (sources > 1) {
    errors.push(invalid(path, '', 'may not have more than one field specified at a time'));
  }
  return errors;
}

export function validateEnvFrom(sources: readonly EnvFromSource[] | undefined, path: string): FieldError[] {
  return (sources ?? []).flatMap(({ prefix, configMapRef, secretRef }, index) => {
    const at = `${path}[${index}]`;
    const errors = allErrors(
      prefix ? nameErrors(prefix, `${at}.prefix`, envVarNameErrors) : [],
      configMapRef ? requiredName(configMapRef.name, `${at}.configMapRef.name`, dns1123SubdomainErrors) : [],
      secretRef ? requiredName(secretRef.name, `${at}.secretRef.name`, dns1123SubdomainErrors) : [],
    );
    if (!configMapRef && !secretRef) {
      errors.push(invalid(path, '', 'must specify one of: `configMapRef` or `secretRef`'));
    } else if (configMapRef && secretRef) {
      errors.push(invalid(path, '', 'may not have more than one field specified at a time'));
    }
    return errors;
  });
}

// JSON Schemas of bodies: the variables of a stored create document, by the fields of its input.
import { isEnumType } from 'graphql';
import type { WritableField } from '../rest/create.ts';
import {
  describeChoices,
  describedBy,
  type JsonSchema,
  type NamedSchemas,
  nullable,
  schemaOfInput,
} from './json-schema.ts';
import { inWireNames } from './selection-schema.ts';

export function schemaOfBody(fields: readonly WritableField[], named: NamedSchemas): JsonSchema {
  const wireNames = new Map(fields.map(({ name, input }) => [input.name, name]));
  return {
    type: 'object',
    properties: Object.fromEntries(
      fields.map((field) => [field.name, schemaOfField(field, wireNames, named)]),
    ),
    required: fields.filter(isRequired).map(({ name }) => name),
  };
}

export function isRequired({ input }: WritableField): boolean {
  return input.extensions['required'] === true;
}

function schemaOfField(
  { input, type }: WritableField,
  wireNames: ReadonlyMap<string, string>,
  named: NamedSchemas,
): JsonSchema {
  const { maxLength, mayBeBlank, mayBeNull } = input.extensions;
  const whole = {
    ...schemaOfInput(type, named),
    ...(type.name === 'String' && !mayBeBlank ? { minLength: 1 } : {}),
    ...(maxLength === undefined ? {} : { maxLength }),
  };
  const choices = isEnumType(type) ? type.getValues() : [];
  const names = new Map([
    ...wireNames,
    ...choices.map(({ name, value }) => [name, value] as const),
  ]);
  return {
    ...(mayBeNull ? nullable(whole) : whole),
    ...describedBy(
      inWireNames(input.description, names),
      isEnumType(type) ? describeChoices(type) : undefined,
    ),
  };
}

import {
  type DocumentNode,
  execute,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  Kind,
  TypeInfo,
  validate,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import type { Context } from '../graphql/context.ts';
import type { Body } from './body.ts';
import { invalidFields, notAnObject } from './errors.ts';
import { coerceField, type WritableField } from './fields.ts';
import type { Created, Route } from './routes.ts';

/** A stored create document made ready. */
export interface PreparedCreate {
  /** In the order of the document. */
  readonly fields: readonly WritableField[];
  /**
   * Creates what a body asks for; gives the record.
   * @throws RestError 400 with what is wrong with every field, HttpError
   */
  create(body: Body, context: Context): Promise<unknown>;
}

/**
 * Checks a stored create document, once.
 * @throws when the document does not fit the schema
 */
export function prepareCreate(
  schema: GraphQLSchema,
  document: NonNullable<Route['create']>,
): PreparedCreate {
  const [invalid] = validate(schema, document);
  if (invalid) throw invalid;
  const fields = findFields(schema, document);

  const run = async (variableValues: Record<string, unknown>, contextValue: Context) => {
    const { data, errors } = await execute({ schema, document, variableValues, contextValue });
    const [error] = errors ?? [];
    if (error) throw error;
    return (data as unknown as { created: Created }).created;
  };

  return {
    fields,
    async create({ value, isForm }, context) {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) {
        throw notAnObject(value);
      }
      const variables: Record<string, unknown> = {};
      const wrong = new Map<string, readonly string[]>();
      for (const field of fields) {
        if (!Object.hasOwn(value, field.name)) continue;
        const given: unknown = Reflect.get(value, field.name);
        const coerced = coerceField(field, given, isForm);
        if (coerced.message !== undefined) wrong.set(field.name, [coerced.message]);
        else if (coerced.value !== undefined) variables[field.name] = coerced.value;
      }
      // Wrong ones are left out, but the others are checked too: all errors are told at once.
      if (wrong.size > 0) variables['validate_only'] = true;
      const { record, errors } = await run(variables, context);
      for (const { field, messages } of errors) {
        const name = fields.find(({ input }) => input.name === field)?.name ?? field;
        if (!wrong.has(name)) wrong.set(name, messages);
      }
      if (wrong.size === 0) return record;
      const inOrder = fields.filter(({ name }) => wrong.has(name));
      throw invalidFields(
        Object.fromEntries(inOrder.map(({ name }) => [name, wrong.get(name) ?? []])),
      );
    },
  };
}

/** The variables that go into fields of the input, in the order of the document. */
function findFields(schema: GraphQLSchema, document: DocumentNode): WritableField[] {
  const fields: WritableField[] = [];
  const typeInfo = new TypeInfo(schema);
  visit(
    document,
    visitWithTypeInfo(typeInfo, {
      ObjectField({ name, value }) {
        const parent = getNamedType(typeInfo.getParentInputType());
        const input = isInputObjectType(parent) ? parent.getFields()[name.value] : undefined;
        if (!input || value.kind !== Kind.VARIABLE) return;
        fields.push({ name: value.name.value, input, type: getNamedType(input.type) });
      },
    }),
  );
  return fields;
}

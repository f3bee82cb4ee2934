// A stored document that creates a record from a body.
import {
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  Kind,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import type { Asker, Engine } from '../graphql/engine.ts';
import type { Body } from './body.ts';
import { dataOf, invalidFields, notAnObject } from './errors.ts';
import { coerceField, type WritableField } from './fields.ts';
import type { Created, Route } from './routes.ts';

/** A stored create document made ready. */
export interface CreateDocument {
  /** In the order of the document. */
  readonly fields: readonly WritableField[];
  /**
   * Creates what a body asks for; gives the record.
   * @throws RestError 400 with what is wrong with every field, HttpError
   */
  create(body: Body, asker: Asker): Promise<unknown>;
}

/** @throws when the document does not fit the schema */
export function storeCreate(
  engine: Engine,
  schema: GraphQLSchema,
  document: NonNullable<Route['create']>,
): CreateDocument {
  const operation = engine.store(document);
  const fields = findFields(schema, document);

  const run = async (variables: Record<string, unknown>, asker: Asker): Promise<Created> => {
    const toAnswer = (result: ExecutionResult) => ({
      ...dataOf<{ created: Created }>(result),
      size: 0,
      shareable: false,
    });
    return (await engine.answer({ operation, variables, key: '', toAnswer }, asker)).created;
  };

  return {
    fields,
    async create({ value, isForm }, asker) {
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
      const { record, errors } = await run(variables, asker);
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
export function findFields(schema: GraphQLSchema, document: DocumentNode): WritableField[] {
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

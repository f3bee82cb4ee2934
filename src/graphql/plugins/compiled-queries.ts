// Executes by graphql-js, and repeated queries compiled to JavaScript (graphql-jit), where it answers as graphql-js does: a
// third of the time of interpreting them.
import {
  type DocumentNode,
  type ExecutionArgs,
  execute,
  type GraphQLSchema,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { isCompiledQuery, compileQuery as write } from 'graphql-jit';
import { httpErrorFor } from '../../database/errors.ts';
import type { Context } from '../context.ts';
import {
  type CompiledQuery,
  measureSelections,
  type Operation,
  type Operations,
} from '../operations.ts';
import type { OperationPlugin } from '../run.ts';

/** Times that a query is interpreted before it is compiled, which takes as long as hundreds of executions. */
const interpretedTimes = 3;

export function useCompiledQueries(operations: Operations): OperationPlugin {
  /** The compiled query; null: it is interpreted. */
  const compile = (operation: Operation, { schema }: ExecutionArgs): CompiledQuery | null => {
    if (operation.compiled !== undefined) return operation.compiled;
    operation.executions += 1;
    if (operation.type !== 'query' || operation.executions <= interpretedTimes) return null;
    const compiled = compileQuery(schema, operation.document, operation.node);
    operations.keep(operation, compiled);
    return compiled;
  };
  return {
    onExecute({ context: { run }, setExecuteFn }) {
      const { operation } = run;
      if (!operation) return;
      setExecuteFn(async (args: ExecutionArgs) => {
        const compiled = compile(operation, args);
        if (!compiled) return execute(args);
        const result = await compiled.run(args.contextValue as Context, args.variableValues ?? {});
        // Errors are reported by graphql-js, whose messages clients know.
        return !result.errors || result.errors.some(httpErrorFor) ? result : execute(args);
      });
    },
  };
}

/** Selections with fragments expanded, each 0.05 ms to compile: 950 characters can have 30,000, a second and 110 MB. */
const maxSelections = 300;
/** Bytes of memory per selection, measured after execution. */
const bytesPerSelection = 5_000;

/** Null: it is not compiled, because it is too long or graphql-jit would answer it differently. */
export function compileQuery(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): CompiledQuery | null {
  if (!isSafe(schema, document)) return null;
  const sizeOf = measureSelections(document, (sizes) => sizes.reduce((a, b) => a + b, 0));
  const selections = sizeOf(operation.selectionSet);
  if (selections > maxSelections) return null;
  const compiled = write(schema, document, operation.name?.value);
  if (!isCompiledQuery(compiled)) return null;
  return {
    run: (context: Context, variables: Record<string, unknown>) =>
      compiled.query(undefined, context, variables),
    bytes: bytesPerSelection * selections,
  };
}

/**
 * Whether graphql-jit 0.8.9 answers as graphql-js does. With `@skip` and `@include` it omits fields, or includes
 * excluded ones. It loses a name such as `__proto__`. A variable inside a list may be null where null is not allowed; inside an object it is null instead of
 * absent, which means the same for a nullable field without a default (`filter`). Without these, none of 33,900 random
 * documents was answered differently. Introspection is excluded because it is never hot.
 */
function isSafe(schema: GraphQLSchema, document: DocumentNode): boolean {
  let found = false;
  const typeInfo = new TypeInfo(schema);
  const visitor = visitWithTypeInfo(typeInfo, {
    Directive: () => {
      found = true;
    },
    Variable: ({ name }, _key, _parent, _path, ancestors) => {
      if (name.value.startsWith('__')) found = true;
      const kinds = ancestors.map((node) => ('kind' in node ? node.kind : undefined));
      const isOptional =
        !isNonNullType(typeInfo.getInputType()) && typeInfo.getDefaultValue() === undefined;
      if (kinds.includes(Kind.LIST) || (kinds.includes(Kind.OBJECT) && !isOptional)) found = true;
    },
    Field: ({ name, alias }) => {
      const isMeta = name.value === '__schema' || name.value === '__type';
      if (isMeta || alias?.value.startsWith('__')) found = true;
    },
  });
  visit(document, visitor);
  return !found;
}

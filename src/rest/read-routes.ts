// Routes are files of GraphQL operations with @route: that of this service, outfits.graphql, and that of REST_DOCUMENTS.
import { readFileSync } from 'node:fs';
import {
  type ConstValueNode,
  type DefinitionNode,
  type DirectiveNode,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  parse,
  separateOperations,
  validate,
  valueFromASTUntyped,
} from 'graphql';
import { z } from 'zod';
import { ConfigError } from '../config/config.ts';
import { packageFolder } from '../config/package.ts';
import { messageOf } from '../errors.ts';
import { findField, findInputs } from './describe.ts';
import { type Create, createRoute, type Route } from './routes.ts';

/** A path that other parts of the gateway serve. */
const taken =
  /^\/(?:$|(?:graphql|health|media|outfits|users)(?:\/|$)|api\/(?:docs|openapi\.json)(?:\/|$))/;

const path = z
  .string()
  .regex(/^(?:\/(?::[A-Za-z_]\w*|[\w.~-]+))+\/?$/)
  .refine((value) => !taken.test(value) && !/\/\.{1,2}(?:\/|$)/.test(value));

/** Arguments of @route, with what each must be. */
const routeArguments: Readonly<Record<string, readonly [schema: z.ZodType, must: string]>> = {
  path: [
    path,
    'a path of your API, such as "/api/looks/" or "/api/users/:id/looks/", and not one that the gateway serves already',
  ],
  name: [z.string().min(1), 'a text'],
  description: [z.string(), 'a text'],
  envelope: [z.unknown(), 'fields of page, such as results or { total: count, items: results }'],
  headers: [
    z.array(z.string()),
    'a list of headers, such as ["X-Total-Count: count", "Link: next previous"]',
  ],
};

/**
 * The routes of this service, and those of a file. Where both have an operation or a fragment of one name, or a method
 * of one path, that of the file counts.
 * @throws ConfigError that names the file and what is wrong in it
 */
export function readRoutes(schema: GraphQLSchema, file?: string): readonly Route[] {
  const own = readFileSync(new URL('src/rest/outfits.graphql', packageFolder), 'utf8');
  const wrong = (what: string) => new ConfigError(`REST_DOCUMENTS is "${file}", but ${what}.`);
  const given = file === undefined ? [] : readDefinitions(file, wrong);
  const keys = new Set(given.map(keyOf));
  const kept = parse(own).definitions.filter((definition) => !keys.has(keyOf(definition)));
  const documents = separateOperations({ kind: Kind.DOCUMENT, definitions: [...kept, ...given] });
  const used = new Set(Object.values(documents).flatMap(({ definitions }) => definitions));
  const unused = given.find((definition) => !used.has(definition));
  if (unused) throw wrong(`no operation has its fragment ${nameOf(unused)}`);
  const reads = new Map<string, Route>();
  const creates = new Map<string, Posted>();
  const places = new Map<string, string>();
  for (const [name, document] of Object.entries(documents)) {
    const fail = (what: string) => wrong(`its operation ${name} ${what}`);
    const found = readOperation(schema, document, fail);
    // One path, whatever its parameters are called.
    const key = found.path.replace(/:\w+/g, ':').replace(/\/$/, '');
    const method = 'operation' in found ? 'GET' : 'POST';
    const other = places.get(`${method} ${key}`);
    if (other !== undefined) {
      throw fail(
        `answers ${method} ${found.path}, as the operation ${other} does: keep one of them`,
      );
    }
    if (keys.has(`${Kind.OPERATION_DEFINITION} ${name}`)) places.set(`${method} ${key}`, name);
    if ('operation' in found) reads.set(key, found);
    else creates.set(key, found);
  }
  const unread = [...creates].find(([key]) => !reads.has(key));
  if (unread) {
    throw wrong(`${unread[1].path} has a mutation only: add a query of the same path`);
  }
  return [...reads].map(([key, route]) => ({ ...route, create: creates.get(key)?.create }));
}

const nameOf = (definition: DefinitionNode) =>
  'name' in definition ? definition.name?.value : undefined;

/** An operation and a fragment may have one name. */
const keyOf = (definition: DefinitionNode) => `${definition.kind} ${nameOf(definition)}`;

/** Operations and fragments; each has a name of its own. */
function readDefinitions(file: string, wrong: (what: string) => Error): readonly DefinitionNode[] {
  const { definitions } = parseFile(file, wrong);
  const [unusable] = definitions.filter(
    ({ kind }) => kind !== Kind.OPERATION_DEFINITION && kind !== Kind.FRAGMENT_DEFINITION,
  );
  if (unusable) throw wrong('it has a definition that is not an operation or a fragment');
  if (definitions.some((definition) => nameOf(definition) === undefined)) {
    throw wrong('an operation in it has no name: give each its own');
  }
  const keys = definitions.map(keyOf);
  const twice = definitions.find((_definition, index) => keys.indexOf(`${keys[index]}`) !== index);
  if (twice) throw wrong(`two definitions in it have the name ${nameOf(twice)}`);
  return definitions;
}

function parseFile(file: string, wrong: (what: string) => Error): DocumentNode {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file));
    return parse(text, { maxTokens: 100_000 });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw wrong(`it cannot be read (${messageOf(error)})`);
    const [place] = error.locations ?? [];
    throw wrong(`line ${place?.line} of it is not GraphQL (${withoutStop(error.message)})`);
  }
}

const withoutStop = (sentence: string) => sentence.replace(/\.$/, '');

/** What a mutation is told besides the fields of a body. */
const validation = 'validateOnly: $validate_only';

interface Posted {
  readonly path: string;
  readonly create: Create;
}

/** A query makes a route; a mutation is what answers POST at a path. */
function readOperation(
  schema: GraphQLSchema,
  document: DocumentNode,
  fail: (what: string) => Error,
): Route | Posted {
  const [operation] = document.definitions.filter(
    (definition) => definition.kind === Kind.OPERATION_DEFINITION,
  );
  const directive = operation?.directives?.find(({ name }) => name.value === 'route');
  if (!operation || !directive) {
    throw fail('has no path: write @route(path: "/api/...", name: "...") behind its variables');
  }
  const { envelope, headers, path = '', name, description = '' } = readDirective(directive, fail);
  if (path === '') throw fail('has no path: add path: "/api/..." to @route');
  const stored: DocumentNode = {
    ...document,
    definitions: document.definitions.map((definition) =>
      definition === operation
        ? {
            ...operation,
            directives: operation.directives?.filter((one) => one !== directive) ?? [],
          }
        : definition,
    ),
  };
  const errors = validate(schema, stored).map(({ message }) => withoutStop(message));
  if (errors.length > 0) throw fail(`cannot be run: ${errors.join('; ')}`);
  const variables = operation.variableDefinitions?.map(({ variable }) => variable.name.value) ?? [];
  for (const [, parameter = ''] of path.matchAll(/:(\w+)/g)) {
    if (!variables.includes(parameter)) {
      throw fail(`has no variable $${parameter}, which its path ${path} names`);
    }
  }
  const aliases = operation.selectionSet.selections.map((selection) =>
    selection.kind === Kind.FIELD ? (selection.alias ?? selection.name).value : undefined,
  );
  const isMutation = operation.operation === 'mutation';
  const kind = (isMutation ? ['created'] : ['page', 'record']).find((one) => aliases.includes(one));
  if (kind === undefined || operation.operation === 'subscription') {
    throw fail(
      'must be a query whose field has the alias page (a list) or record, or a mutation whose field has the alias created',
    );
  }
  const title = name ?? (operation.name?.value ?? '').replace(/(?<=[a-z])(?=[A-Z])/g, ' ');
  try {
    if (kind !== 'page' && (envelope || headers)) {
      throw new Error('only a list has an envelope and headers');
    }
    if (kind === 'created') {
      findField(schema, stored, 'created', 'record');
      for (const name of ['field', 'code', 'messages']) {
        findField(schema, stored, 'created', 'errors', name);
      }
      const inputs = findInputs(schema, stored);
      const fields = inputs.filter(({ isArgument }) => !isArgument);
      const others = inputs.filter(({ isArgument }) => isArgument);
      // With one invalid field, the others are validated only.
      if (others.map(({ name, input }) => `${input.name}: $${name}`).join() !== validation) {
        throw new Error(`its variables must be fields of its input, but for ${validation}`);
      }
      return { path, create: { document: stored, fields } };
    }
    const read = { path, name: title, description, document: stored };
    return createRoute(schema, read, kind === 'page' ? { template: envelope, headers } : undefined);
  } catch (error) {
    throw fail(`cannot be served: ${withoutStop(messageOf(error))}`);
  }
}

interface RouteArguments {
  readonly path?: string;
  readonly name?: string;
  readonly description?: string;
  readonly envelope?: ConstValueNode;
  readonly headers?: readonly string[];
}

function readDirective({ arguments: given = [] }: DirectiveNode, fail: (what: string) => Error) {
  const read = given.map(({ name: { value: name }, value }) => {
    const [schema, must] = routeArguments[name] ?? [];
    if (!schema) {
      const known = Object.keys(routeArguments).join(', ');
      throw fail(`has ${name} in @route, which has only ${known}`);
    }
    const plain = valueFromASTUntyped(value);
    const { success } = schema.safeParse(plain);
    if (!success)
      throw fail(`has ${JSON.stringify(plain)} as ${name} of @route, which must be ${must}`);
    return [name, name === 'envelope' ? value : plain];
  });
  return Object.fromEntries(read) as RouteArguments;
}

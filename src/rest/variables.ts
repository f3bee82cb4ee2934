// Variables of a stored document, coerced from the query string and the path by their types.
import {
  type ASTNode,
  type GraphQLEnumType,
  type GraphQLInputType,
  type GraphQLScalarType,
  type GraphQLSchema,
  getNullableType,
  isEnumType,
  isListType,
  isNonNullType,
  isScalarType,
  Kind,
  type OperationDefinitionNode,
  print,
  typeFromAST,
  visit,
} from 'graphql';
import { type FoundInput, findInputs } from './describe.ts';
import {
  invalidChoice,
  invalidParameter,
  invalidValue,
  notFound,
  pageNotFound,
  RestError,
  severalFields,
} from './errors.ts';

type Variables = Record<string, unknown>;

/**
 * Missing and blank parameters are left out; the path has precedence over the query string.
 * @throws RestError 400 with the name of the parameter; 404 for a path parameter
 */
export type ReadVariables = (query: QueryParameters, path?: PathParameters) => Variables;

type Leaf = GraphQLEnumType | GraphQLScalarType;

interface Variable {
  readonly name: string;
  readonly type: Leaf;
  /** Whether it takes all values of a repeated parameter; if not, the last one. */
  readonly isList: boolean;
  readonly isRequired: boolean;
  readonly range: Range | undefined;
  /** What is wrong with a text, as the rest of a sentence. */
  readonly refuse: ((text: string) => string | undefined) | undefined;
}

type Range = readonly [least: number, most: number];

export function rangeOf(input: FoundInput['input'] | undefined): Range | undefined {
  return input?.extensions['range'] as Range | undefined;
}

/** The variables that say which page: names of parameters by the arguments of GraphQL, such as `pageSize: $per_page`. */
export interface PageParameters {
  /** The number of the page: of a list, or of a list in a record; undefined: pages have no number. */
  readonly page: string | undefined;
  readonly last: string;
  readonly pageSize: string;
  readonly offset: string | undefined;
}

export function readPageParameters(operation: ASTNode, isList: boolean): PageParameters {
  const found: Partial<Record<'last' | 'offset' | 'page' | 'pageSize', string>> = {};
  visit(operation, {
    Argument: ({ name: { value: name }, value }) => {
      if (value.kind !== Kind.VARIABLE || !/^(?:page|last|pageSize|offset)$/.test(name)) return;
      found[name as keyof typeof found] ??= value.name.value;
    },
  });
  const { page = 'page', last, pageSize = 'limit', offset } = found;
  const isNumbered = isList ? offset === undefined : last !== undefined;
  return { page: isNumbered ? page : undefined, last: last ?? 'last', pageSize, offset };
}

/** An invalid page is a 404, and `last` is not a number. */
export function createVariableReader(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  { page, last }: PageParameters,
): ReadVariables {
  const { variableDefinitions = [] } = operation;
  const inputs = findInputs(schema, operation);
  const variables = variableDefinitions.flatMap(({ variable, type, defaultValue }): Variable[] => {
    const name = variable.name.value;
    if (page !== undefined && (name === page || name === last)) return [];
    const whole = typeFromAST(schema, type as never) as GraphQLInputType | undefined;
    const nullable = getNullableType(whole);
    const isList = isListType(nullable);
    const leaf = isList ? getNullableType(nullable.ofType) : nullable;
    if (!isScalarType(leaf) && !isEnumType(leaf)) {
      throw new Error(`$${name} of a stored document is ${print(type)}: no parameter can give it.`);
    }
    const isRequired = isNonNullType(whole) && !defaultValue;
    const input = inputs.find((input) => input.name === name)?.input;
    const refuse = input?.extensions['refuse'] as Variable['refuse'];
    return [{ name, type: leaf, isList, isRequired, range: rangeOf(input), refuse }];
  });

  return (query, path = {}) => {
    const values: Variables = {};
    for (const { name, type, isList, isRequired, range, refuse } of variables) {
      if (Object.hasOwn(path, name)) {
        const read = readFromPath(type, name, path[name] ?? '');
        values[name] = isList ? [read] : read;
        continue;
      }
      const given = isList
        ? query.filter(([parameter]) => parameter === name).map(([, text]) => text)
        : [readInRange(readParameter(query, name) ?? '', range)];
      const texts = given.filter((text) => text !== '');
      if (texts.length > 0) {
        const read = texts.map((text) => readValue(type, name, text));
        const fault = refuse && texts.map(refuse).find((found) => found !== undefined);
        if (fault) throw invalidValue(name, fault);
        values[name] = isList ? read : read[0];
      } else if (isRequired) throw invalidParameter(name, 'This field is required.');
    }
    if (page === undefined) return values;
    const number = parsePageNumber(readParameter(query, page));
    if (number === undefined) throw pageNotFound();
    return Object.assign(values, number === 'last' ? { [last]: true } : { [page]: number });
  };
}

const pagePattern = /^\s*\+?0*([1-9][0-9]*)\s*$/;

export const maxPage = 2_147_483_647;

function parsePageNumber(value: string | undefined): number | 'last' | undefined {
  if (value === undefined || value === '') return 1;
  if (value === 'last') return 'last';
  const digits = pagePattern.exec(value)?.[1];
  // Hundreds of digits become Infinity, which is above the limit.
  return digits !== undefined && Number(digits) <= maxPage ? Number(digits) : undefined;
}

/**
 * Empty for what is below a range or no number, and the maximum for what is above: sizes never fail.
 * @see https://github.com/encode/django-rest-framework/blob/3.16.0/rest_framework/pagination.py#L23 _positive_int
 */
function readInRange(text: string, range: Range | undefined): string {
  if (!range) return text;
  const number = /^\s*\+?\d+\s*$/.test(text) ? Number(text) : -1;
  return number < range[0] ? '' : String(Math.min(number, range[1]));
}

function readFromPath(type: Leaf, name: string, text: string): unknown {
  // One record has one address, as with `<int:pk>` of Django.
  if (type.name === 'Int' && !/^[0-9]+$/.test(text)) throw notFound();
  try {
    return readValue(type, name, text);
  } catch (error) {
    throw error instanceof RestError ? notFound() : error;
  }
}

function readValue(type: Leaf, name: string, text: string): unknown {
  if (isEnumType(type)) return readChoice(type, name, text);
  // PostgreSQL text cannot contain it.
  if (text.includes('\0')) throw invalidParameter(name, 'Null characters are not allowed.');
  switch (type.name) {
    case 'Boolean':
      return parseBoolean(text) ?? refuse(name, 'Must be a valid boolean.');
    case 'Float':
      return readNumber(text) ?? refuse(name, 'A valid number is required.');
    case 'Int': {
      const number = readNumber(text);
      const isInt = number !== undefined && (number | 0) === number;
      return isInt ? number : refuse(name, 'A valid integer is required.');
    }
    case 'DateTime':
      // A date, as forms send it, is its first moment.
      return readScalar(type, name, /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
    default:
      return readScalar(type, name, text);
  }
}

const trueWords = words('t T y Y yes Yes YES true True TRUE on On ON 1', 1, true);
const falseWords = words('f F n N no No NO false False FALSE off Off OFF 0', 0, false);

function words(spellings: string, ...values: readonly unknown[]): ReadonlySet<unknown> {
  return new Set([...spellings.split(' '), ...values]);
}

export function parseBoolean(value: unknown): boolean | undefined {
  if (trueWords.has(value)) return true;
  return falseWords.has(value) ? false : undefined;
}

function readNumber(text: string): number | undefined {
  const number = /^\s*[+-]?\d+(?:\.\d+)?\s*$/.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}

/** Validates by the scalar; the engine parses the text. */
function readScalar(type: GraphQLScalarType, name: string, text: string): string {
  try {
    type.parseValue(text);
    return text;
  } catch (error) {
    throw invalidParameter(name, error instanceof Error ? error.message : 'Not a valid value.');
  }
}

function readChoice(type: GraphQLEnumType, name: string, text: string): string {
  const { simplify } = type.extensions as { readonly simplify?: (text: string) => unknown };
  const meant = text.includes(',') ? simplify?.(text) : text;
  const choice = type.getValues().find(({ value }) => value === meant);
  if (choice) return choice.name;
  if (meant === 'several') throw severalFields(name, text);
  const spellings = type.getValues().map(({ value }) => String(value));
  throw invalidChoice(name, text, spellings);
}

function refuse(name: string, message: string): never {
  throw invalidParameter(name, message);
}
export type QueryParameters = readonly (readonly [name: string, value: string])[];

/**
 * Parses form encoding: `+` is a space, invalid percent-encoding stays, invalid UTF-8 becomes U+FFFD.
 * @see https://url.spec.whatwg.org/#urlencoded-parsing
 */
export function parseQuery(raw: string): QueryParameters {
  return [...new URLSearchParams(`?${raw}`)];
}

export function readParameter(parameters: QueryParameters, name: string): string | undefined {
  return parameters.findLast(([parameterName]) => parameterName === name)?.[1];
}

/** Sets `name` to `value`, or removes it, and sorts by name in code point order; repeated names keep their order. */
export function formatQuery(
  parameters: QueryParameters,
  name: string,
  value: string | undefined,
): string {
  const others = parameters.filter(([parameterName]) => parameterName !== name);
  return [...others, ...(value === undefined ? [] : [[name, value] as const])]
    .map(([parameterName, text]) => [sortKeyOf(parameterName), parameterName, text] as const)
    .sort(([a], [b]) => (a < b ? -1 : Number(a > b)))
    .map(([_key, parameterName, text]) => `${encodeForm(parameterName)}=${encodeForm(text)}`)
    .join('&');
}

/** JavaScript compares UTF-16 units, which puts U+10000 before U+FFFF: this moves surrogates behind all others. */
function sortKeyOf(name: string): string {
  return name.replace(/[\ud800-\uffff]/g, (unit) => {
    const code = unit.charCodeAt(0);
    return String.fromCharCode(code < 0xe000 ? code + 0x2000 : code - 0x800);
  });
}

/** Only `A-Za-z0-9_.-~` stay raw; URLSearchParams would keep `*` and encode `~`. */
function encodeForm(text: string): string {
  if (/^[\w.~-]*$/.test(text)) return text;
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}

export type PathParameters = Readonly<Record<string, string>>;

/** `/api/users/:id/` with the values of its parameters. */
export function fillPath(path: string, parameters: PathParameters): string {
  return path.replace(/:(\w+)/g, (_all, name: string) =>
    encodeURIComponent(parameters[name] ?? ''),
  );
}

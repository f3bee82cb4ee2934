// Values of a body as Django REST Framework reads them.
import { GraphQLBoolean, type GraphQLInputField, type GraphQLNamedType, isEnumType } from 'graphql';

/** A field of the body: a variable of the document, and the field of the GraphQL input it goes to. */
export interface WritableField {
  /** Its name on the wire. */
  readonly name: string;
  readonly input: GraphQLInputField;
  readonly type: GraphQLNamedType;
}

// Values as Django REST Framework reads them, with its messages. What a right type holds is checked
// behind the GraphQL schema, for all clients.

type Coerced =
  | { readonly value: unknown; readonly message?: never }
  | { readonly value?: never; readonly message: string };

const trueWords = words('t T y Y yes Yes YES true True TRUE on On ON 1', 1, true);
const falseWords = words('f F n N no No NO false False FALSE off Off OFF 0', 0, false);

function words(spellings: string, ...values: readonly unknown[]): ReadonlySet<unknown> {
  return new Set([...spellings.split(' '), ...values]);
}

/** @returns the value for the variable (undefined: as if it were not given), or what is wrong */
export function coerceField(
  { input, type }: WritableField,
  value: unknown,
  isForm: boolean,
): Coerced {
  const { mayBeBlank = false, required = false } = input.extensions;
  // A form sends every field that it shows, filled in or not.
  if (isForm && value === '' && !mayBeBlank && !required) return { value: undefined };
  if (value === null) return { value };
  if (type === GraphQLBoolean) return coerceBoolean(value);
  if (isEnumType(type)) {
    const choice = type.getValues().find((candidate) => candidate.value === value);
    return choice ? { value: choice.name } : { message: `"${show(value)}" is not a valid choice.` };
  }
  // Beyond these a number is not the text any more that was sent.
  const isExact = typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  if (typeof value === 'string' || isExact) return { value: String(value) };
  return { message: 'Not a valid string.' };
}

function coerceBoolean(given: unknown): Coerced {
  const value = parseBoolean(given);
  return value === undefined ? { message: 'Must be a valid boolean.' } : { value };
}

/** Undefined for a word that stands for neither. */
export function parseBoolean(value: unknown): boolean | undefined {
  if (trueWords.has(value)) return true;
  return falseWords.has(value) ? false : undefined;
}

function show(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

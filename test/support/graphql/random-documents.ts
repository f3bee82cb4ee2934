// Random valid documents over a schema, with variables for them: fragments, conditions, aliases,
// defaults and explicit nulls.
import {
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  OperationTypeNode,
  parse,
  parseValue,
  validate,
  valueFromASTUntyped,
} from 'graphql';
import type { Dice } from '../models/dice.ts';

export interface RandomDocument {
  readonly text: string;
  /** Several sets of values for its variables, some of which do not fit. */
  readonly variables: readonly Record<string, unknown>[];
  readonly types: Readonly<Record<string, GraphQLInputType>>;
}

/** What a generator may take for the arguments of the schema, so that much is found. */
export interface Values {
  readonly Int: readonly number[];
  readonly String: readonly string[];
}

/** A document that is valid, since those that are not are thrown away. */
export function generateDocument(
  schema: GraphQLSchema,
  dice: Dice,
  values: Values,
  operation = OperationTypeNode.QUERY,
): RandomDocument {
  for (;;) {
    const document = new Writer(schema, dice, values).write(operation);
    if (validate(schema, parse(document.text)).length === 0) return document;
  }
}

interface Variable {
  readonly name: string;
  readonly type: GraphQLInputType;
  readonly isRequired: boolean;
  readonly fallback: string | undefined;
}

class Writer {
  readonly #variables: Variable[] = [];
  readonly #fragments = new Map<string, string>();
  readonly #fragmentsOf = new Map<string, string[]>();
  #fieldsLeft = 40;

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly dice: Dice,
    private readonly values: Values,
  ) {}

  write(operation: OperationTypeNode): RandomDocument {
    const root = this.schema.getRootType(operation);
    if (!root) throw new Error(`The schema has no ${operation}.`);
    // Of which a subscription has one, without a condition.
    const isOne = operation === OperationTypeNode.SUBSCRIPTION;
    const set = isOne ? `{ ${this.#field(root, 0)} }` : this.#selectionSet(root, 0);
    const declared = this.#variables.map(
      ({ name, type, isRequired, fallback }) =>
        `$${name}: ${type}${isRequired ? '!' : ''}${fallback ? ` = ${fallback}` : ''}`,
    );
    const head = `${operation} Random${declared.length > 0 ? `(${declared.join(', ')})` : ''}`;
    const text = [`${head} ${set}`, ...this.#fragments.values()].join('\n');
    const types = Object.fromEntries(this.#variables.map(({ name, type }) => [name, type]));
    return { text, types, variables: Array.from({ length: 5 }, () => this.#variableValues()) };
  }

  #selectionSet(type: GraphQLObjectType, depth: number): string {
    const selections = Array.from({ length: 1 + this.dice.below(5) }, () => {
      const kind = this.dice.number();
      if (kind < 0.12 && depth < 5) return this.#inlineFragment(type, depth);
      return kind < 0.3 && depth < 5 ? this.#spread(type, depth) : this.#field(type, depth);
    });
    return `{ ${selections.join(' ')} }`;
  }

  #field(type: GraphQLObjectType, depth: number): string {
    const fields = Object.values(type.getFields());
    const leaves = fields.filter((field) => isLeafType(getNamedType(field.type)));
    const isDeep = depth >= 5 || this.#fieldsLeft <= 0;
    if (this.dice.chance(0.03) || (isDeep && leaves.length === 0)) return '__typename';
    const field = this.dice.pick(isDeep ? leaves : fields);
    this.#fieldsLeft -= 1;
    const named = getNamedType(field.type);
    const alias = this.dice.chance(0.2) ? `${this.dice.pick(['a', 'b', 'c'])}: ` : '';
    let set = isObjectType(named) ? ` ${this.#selectionSet(named, depth + 1)}` : '';
    if (isAbstractType(named)) {
      const possible = this.dice.pick(this.schema.getPossibleTypes(named));
      set = ` { __typename ... on ${possible.name} ${this.#selectionSet(possible, depth + 1)} }`;
    }
    const condition = type === this.schema.getSubscriptionType() ? '' : this.#condition();
    return `${alias}${field.name}${this.#arguments(field.args)}${condition}${set}`;
  }

  #inlineFragment(type: GraphQLObjectType, depth: number): string {
    const on = this.dice.chance(0.5) ? ` on ${type.name}` : '';
    return `...${on}${this.#condition()} ${this.#selectionSet(type, depth + 1)}`;
  }

  #spread(type: GraphQLObjectType, depth: number): string {
    const written = this.#fragmentsOf.get(type.name) ?? [];
    let name = written.length > 0 && this.dice.chance(0.6) ? this.dice.pick(written) : undefined;
    if (!name) {
      name = `${type.name}${this.#fragments.size}`;
      // Reserved first, so that names stay apart; usable once it is written, so that none is in itself.
      this.#fragments.set(name, '');
      const set = this.#selectionSet(type, depth + 1);
      this.#fragments.set(name, `fragment ${name} on ${type.name} ${set}`);
      this.#fragmentsOf.set(type.name, [...(this.#fragmentsOf.get(type.name) ?? []), name]);
    }
    return `...${name}${this.#condition()}`;
  }

  #condition(): string {
    if (!this.dice.chance(0.15)) return '';
    const directive = this.dice.pick(['include', 'skip']);
    const boolean = this.schema.getType('Boolean') as GraphQLInputType;
    const literal = () => String(this.dice.chance(0.5));
    const value = this.dice.chance(0.4)
      ? literal()
      : this.#variable(boolean, this.dice.chance(0.5) ? literal() : undefined, true);
    return ` @${directive}(if: ${value})`;
  }

  #arguments(args: readonly GraphQLArgument[]): string {
    const given = args.filter(({ type }) => isNonNullType(type) || this.dice.chance(0.4));
    return given.length > 0 ? `(${given.map((one) => this.#argument(one)).join(', ')})` : '';
  }

  /** An argument, or a field of an input: a variable or a literal. */
  #argument({ name, type }: GraphQLArgument | GraphQLInputField): string {
    const isRequired = isNonNullType(type);
    if (this.dice.chance(0.5)) {
      const fallback = this.dice.chance(0.4) ? this.#literal(type, true) : undefined;
      return `${name}: ${this.#variable(type, fallback, isRequired)}`;
    }
    return `${name}: ${!isRequired && this.dice.chance(0.15) ? 'null' : this.#literal(type)}`;
  }

  /** A variable of its own: nullable with a default where null is not allowed, too. */
  #variable(type: GraphQLInputType, fallback: string | undefined, isNonNull: boolean): string {
    const name = `v${this.#variables.length}`;
    const isRequired = isNonNull && fallback === undefined;
    this.#variables.push({ name, type: getNullableType(type), isRequired, fallback });
    return `$${name}`;
  }

  /** @param isConstant without variables, as the default of one must be */
  #literal(type: GraphQLInputType, isConstant = false): string {
    if (isNonNullType(type)) return this.#literal(type.ofType, isConstant);
    if (isListType(type)) {
      const item = this.#literal(type.ofType, isConstant);
      // One value stands for a list of it.
      return this.dice.pick([item, `[${item}]`, `[${item}]`, '[]']);
    }
    if (isInputObjectType(type)) {
      // One condition: more at a time let nothing through.
      const field = this.dice.pick(Object.values(type.getFields()));
      if (this.dice.chance(0.3)) return '{}';
      const constant = () => `${field.name}: ${this.#literal(field.type, true)}`;
      return `{ ${isConstant ? constant() : this.#argument(field)} }`;
    }
    if (isEnumType(type)) return this.dice.pick(type.getValues()).name;
    if (type.name === 'Int') return String(this.dice.pick(this.values.Int));
    return type.name === 'Boolean'
      ? String(this.dice.chance(0.5))
      : JSON.stringify(this.dice.pick(this.values.String));
  }

  #variableValues(): Record<string, unknown> {
    const values: Record<string, unknown> = {};
    for (const { name, type, isRequired } of this.#variables) {
      const kind = this.dice.number();
      // What must be there is left out or null now and then only, or else nothing is answered.
      const rare = isRequired ? 0.2 : 1;
      if (kind < 0.12 * rare) continue;
      if (kind < 0.27 * rare) values[name] = null;
      else if (kind < 0.27 * rare + 0.02)
        values[name] = this.dice.pick(['nonsense', 1.5, [], {}, 2 ** 31]);
      else values[name] = valueFromASTUntyped(parseValue(this.#literal(type, true)));
    }
    return values;
  }
}

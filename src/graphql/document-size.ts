// Counts tokens, aliases, directives, repeats and depth of a document.
import {
  type ASTNode,
  type DocumentNode,
  GraphQLError,
  Kind,
  Lexer,
  type SelectionSetNode,
  Source,
  TokenKind,
  visit,
} from 'graphql';

/** Counts the tokens of a document up to `max + 1`, or to where it cannot be read. */
export function countTokens(text: string, max: number): number {
  const lexer = new Lexer(new Source(text));
  let tokens = 0;
  try {
    while (tokens <= max && lexer.advance().kind !== TokenKind.EOF) tokens++;
  } catch (error) {
    // The parser stumbles there too, and says where.
    if (!(error instanceof GraphQLError)) throw error;
  }
  return tokens;
}

export interface Occurrences {
  readonly aliases: number;
  /** Aliases of `__schema`, and of what is inside `__schema` and `__type`. */
  readonly introspectionAliases: number;
  readonly directives: number;
  /** Fields that are in one pair of braces already under the same name. */
  readonly repeats: number;
}

/** Counts what is written in a document, whether or not an operation uses it. */
export function countOccurrences(document: DocumentNode): Occurrences {
  let aliases = 0;
  let introspectionAliases = 0;
  let directives = 0;
  let repeats = 0;
  let levelsOfIntrospection = 0;
  visit(document, {
    enter(node) {
      if (node.kind === Kind.DIRECTIVE) directives++;
      if (node.kind === Kind.SELECTION_SET) repeats += countRepeats(node);
      if (node.kind === Kind.FIELD && node.alias) {
        aliases++;
        if (levelsOfIntrospection > 0 || node.name.value === '__schema') introspectionAliases++;
      }
      if (isIntrospection(node)) levelsOfIntrospection++;
    },
    leave(node) {
      if (isIntrospection(node)) levelsOfIntrospection--;
    },
  });
  return { aliases, introspectionAliases, directives, repeats };
}

function countRepeats({ selections }: SelectionSetNode): number {
  const names = selections.flatMap((selection) =>
    selection.kind === Kind.FIELD ? [(selection.alias ?? selection.name).value] : [],
  );
  return names.length - new Set(names).size;
}

/** A field or fragment in which everything is of the schema's own types. */
function isIntrospection(node: ASTNode): boolean {
  if (node.kind === Kind.FIELD) return ['__schema', '__type'].includes(node.name.value);
  return node.kind === Kind.FRAGMENT_DEFINITION && node.typeCondition.name.value.startsWith('__');
}

/** The max fields in fields, through fragments. */
export function measureDepth({ definitions }: DocumentNode): number {
  const fragments = new Map(
    definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment.selectionSet]),
  );
  const known = new Map<string, number>();

  const depthOfFragment = (name: string): number => {
    const depth = known.get(name);
    if (depth !== undefined) return depth;
    // Also ends a cycle, which validation reports.
    known.set(name, 0);
    known.set(name, depthOf(fragments.get(name)));
    return known.get(name) ?? 0;
  };
  const depthOf = (set: SelectionSetNode | undefined): number => {
    let deepest = 0;
    for (const selection of set?.selections ?? []) {
      const depth =
        selection.kind === Kind.FRAGMENT_SPREAD
          ? depthOfFragment(selection.name.value)
          : depthOf(selection.selectionSet) + (selection.kind === Kind.FIELD ? 1 : 0);
      deepest = Math.max(deepest, depth);
    }
    return deepest;
  };
  return Math.max(
    0,
    ...definitions.map((definition) =>
      'selectionSet' in definition ? depthOf(definition.selectionSet) : 0,
    ),
  );
}

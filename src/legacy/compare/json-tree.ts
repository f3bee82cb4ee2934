// A JSON parser that keeps the source text: JSON.parse loses repeated keys, spaces, and the spelling of
// numbers and strings, and two answers may differ only in these.

export type JsonNode = JsonObject | JsonArray | JsonScalar;

/** The exact text in the document. */
interface Written {
  readonly text: string;
}
export interface JsonObject extends Written {
  readonly type: 'object';
  /** The last value of a repeated key counts, as in JSON.parse. */
  readonly members: ReadonlyMap<string, { readonly keyText: string; readonly value: JsonNode }>;
  /** Overridden members, with their places. */
  readonly repeated: string;
}
export interface JsonArray extends Written {
  readonly type: 'array';
  readonly items: readonly JsonNode[];
}
export interface JsonScalar extends Written {
  readonly type: 'string' | 'number' | 'literal';
  readonly value: unknown;
}

/** Deeper values are kept as one text: recursion may overflow the stack. A record has two levels. */
const maxDepth = 64;
/** Further values are kept as one text: a page of 64 MiB may consist of empty lists. */
const maxNodes = 4_000_000;

/**
 * The root, and which spaces stand where between tokens; undefined when it is no JSON.
 * @param allowsRest whether more may follow an object or array: it is the `rest`
 */
export function parseJsonTree(
  text: string,
  allowsRest = false,
): { readonly root: JsonNode; readonly spaces: string; readonly rest: string } | undefined {
  try {
    return new Parser(text).parse(allowsRest);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

export function memberOf(node: JsonNode | undefined, key: string): JsonNode | undefined {
  return node?.type === 'object' ? node.members.get(key)?.value : undefined;
}

class Parser {
  #at = 0;
  #nodes = 0;
  /** Each with the punctuation before it. */
  readonly #spaces = new Set<string>();

  constructor(private readonly text: string) {}

  parse(allowsRest: boolean) {
    this.#skipSpace();
    const root = this.#value(0);
    const end = this.#at;
    this.#skipSpace();
    const rest = this.text.slice(this.#at);
    const isWhole = root.type === 'object' || root.type === 'array';
    if (rest !== '' && !(allowsRest && isWhole)) throw new SyntaxError();
    if (end < this.#at) this.#spaces.add(`$${this.text.slice(end)}`);
    return { root, spaces: [...this.#spaces].sort().join('|'), rest };
  }

  #value(depth: number): JsonNode {
    const letter = this.text[this.#at];
    const isWhole = depth > maxDepth || ++this.#nodes > maxNodes;
    if (isWhole && (letter === '{' || letter === '[')) return this.#whole();
    if (letter === '{') return this.#object(depth);
    if (letter === '[') return this.#array(depth);
    if (letter === '"') return this.#string();
    return this.#word();
  }

  #object(depth: number): JsonObject {
    const start = this.#at;
    const members = new Map<string, { keyText: string; value: JsonNode }>();
    let repeated = '';
    this.#readItems('}', (index) => {
      const { value: key, text: keyText } = this.#string();
      this.#skipSpace();
      this.#expect(':');
      this.#skipSpace();
      const earlier = members.get(key);
      if (earlier) repeated += `${index}${earlier.keyText}:${earlier.value.text},`;
      members.set(key, { keyText, value: this.#value(depth + 1) });
    });
    return { type: 'object', members, repeated, text: this.text.slice(start, this.#at) };
  }

  #array(depth: number): JsonArray {
    const start = this.#at;
    const items: JsonNode[] = [];
    this.#readItems(']', () => items.push(this.#value(depth + 1)));
    return { type: 'array', items, text: this.text.slice(start, this.#at) };
  }

  #readItems(bracket: string, read: (index: number) => void): void {
    this.#at++;
    this.#skipSpace();
    for (let index = 0; this.text[this.#at] !== bracket; index++) {
      if (index > 0) this.#expect(',');
      this.#skipSpace();
      read(index);
      this.#skipSpace();
    }
    this.#at++;
  }

  /** An object or array without a look at what it holds. */
  #whole(): JsonScalar {
    const start = this.#at;
    let depth = 0;
    do {
      const letter = this.text[this.#at];
      if (letter === undefined) throw new SyntaxError();
      if (letter === '"') {
        this.#string();
        continue;
      }
      if (letter === '{' || letter === '[') depth++;
      if (letter === '}' || letter === ']') depth--;
      this.#at++;
    } while (depth > 0);
    const text = this.text.slice(start, this.#at);
    return { type: 'literal', text, value: text };
  }

  #string(): JsonScalar & { readonly value: string } {
    const start = this.#at;
    if (this.text[start] !== '"') throw new SyntaxError();
    let end = start;
    do {
      end = this.text.indexOf('"', end + 1);
      if (end === -1) throw new SyntaxError();
    } while (this.#isEscaped(end));
    this.#at = end + 1;
    const text = this.text.slice(start, this.#at);
    return { type: 'string', text, value: String(JSON.parse(text)) };
  }

  #isEscaped(quote: number): boolean {
    let slashes = 0;
    while (this.text[quote - 1 - slashes] === '\\') slashes++;
    return slashes % 2 === 1;
  }

  #word(): JsonScalar {
    const word = /[^\s,\]}:[{"]*/y;
    word.lastIndex = this.#at;
    const text = word.exec(this.text)?.[0] ?? '';
    this.#at += text.length;
    const value: unknown = JSON.parse(text);
    return { type: typeof value === 'number' ? 'number' : 'literal', text, value };
  }

  #skipSpace(): void {
    const start = this.#at;
    while (' \t\n\r'.includes(this.text[this.#at] || '?')) this.#at++;
    if (start === this.#at) return;
    const before = /[{}[\]:,]/.exec(this.text[start - 1] ?? '')?.[0] ?? '';
    this.#spaces.add(before + this.text.slice(start, this.#at));
  }

  #expect(letter: string): void {
    if (this.text[this.#at] !== letter) throw new SyntaxError();
    this.#at++;
  }
}

// JSON as it was written: JSON.parse forgets repeated keys, spaces, and how a number or a text is
// spelt, and two answers may differ in nothing else.

export type JsonNode = JsonObject | JsonArray | JsonScalar;

interface Written {
  /** Exactly what stands in the document. */
  readonly text: string;
}
export interface JsonMember {
  readonly key: string;
  /** The key as it was written, with its quotes. */
  readonly keyText: string;
  readonly value: JsonNode;
}
export interface JsonObject extends Written {
  readonly type: 'object';
  readonly members: readonly JsonMember[];
  /** The spaces between its own tokens, each once. */
  readonly spaces: string;
}
export interface JsonArray extends Written {
  readonly type: 'array';
  readonly items: readonly JsonNode[];
  readonly spaces: string;
}
export interface JsonScalar extends Written {
  readonly type: 'string' | 'number' | 'literal';
  readonly value: unknown;
}

/** Deeper values are taken as one text, since they may run out of stack; a record has two levels. */
const maxDepth = 64;
/** So is what comes behind them: a page of 64 MiB may be made of empty lists. */
const maxNodes = 4_000_000;

/**
 * Reads a JSON document.
 * @returns its root and the spaces around it, or undefined when it is none
 */
export function parseJsonTree(
  text: string,
): { readonly root: JsonNode; readonly spaces: string } | undefined {
  try {
    return new Parser(text).parse();
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

class Parser {
  readonly #text: string;
  #at = 0;
  #nodes = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parse() {
    const before = this.#space();
    const root = this.#value(0);
    const after = this.#space();
    if (this.#at < this.#text.length) throw new SyntaxError();
    return { root, spaces: `${before}|${after}` };
  }

  #value(depth: number): JsonNode {
    const letter = this.#text[this.#at];
    const isWhole = depth > maxDepth || ++this.#nodes > maxNodes;
    if (isWhole && (letter === '{' || letter === '[')) return this.#whole();
    if (letter === '{') return this.#object(depth);
    if (letter === '[') return this.#array(depth);
    if (letter === '"') return this.#string();
    return this.#word();
  }

  #object(depth: number): JsonObject {
    const members: JsonMember[] = [];
    const spaces = new Set<string>();
    const start = this.#at++;
    for (let end = this.#ends('}', spaces); !end; end = this.#ends('}', spaces, true)) {
      const { value: key, text: keyText } = this.#string();
      spaces.add(this.#space());
      this.#expect(':');
      spaces.add(this.#space());
      members.push({ key: String(key), keyText, value: this.#value(depth + 1) });
      spaces.add(this.#space());
    }
    const text = this.#text.slice(start, this.#at);
    return { type: 'object', members, text, spaces: join(spaces) };
  }

  #array(depth: number): JsonArray {
    const items: JsonNode[] = [];
    const spaces = new Set<string>();
    const start = this.#at++;
    for (let end = this.#ends(']', spaces); !end; end = this.#ends(']', spaces, true)) {
      items.push(this.#value(depth + 1));
      spaces.add(this.#space());
    }
    return { type: 'array', items, text: this.#text.slice(start, this.#at), spaces: join(spaces) };
  }

  /** A holder without a look at what it holds. */
  #whole(): JsonScalar {
    const start = this.#at;
    let depth = 0;
    do {
      const letter = this.#text[this.#at];
      if (letter === undefined) throw new SyntaxError();
      if (letter === '"') {
        this.#string();
        continue;
      }
      if (letter === '{' || letter === '[') depth++;
      if (letter === '}' || letter === ']') depth--;
      this.#at++;
    } while (depth > 0);
    const text = this.#text.slice(start, this.#at);
    return { type: 'literal', text, value: text };
  }

  /** Whether the holder ends here; a comma must stand between its members. */
  #ends(bracket: string, spaces: Set<string>, hasMembers = false): boolean {
    spaces.add(this.#space());
    if (this.#text[this.#at] === bracket) {
      this.#at++;
      return true;
    }
    if (hasMembers) {
      this.#expect(',');
      spaces.add(this.#space());
    }
    return false;
  }

  #string(): JsonScalar {
    const start = this.#at;
    if (this.#text[start] !== '"') throw new SyntaxError();
    let end = start;
    do {
      end = this.#text.indexOf('"', end + 1);
      if (end === -1) throw new SyntaxError();
    } while (this.#isEscaped(end));
    this.#at = end + 1;
    const text = this.#text.slice(start, this.#at);
    return { type: 'string', text, value: JSON.parse(text) };
  }

  #isEscaped(quote: number): boolean {
    let slashes = 0;
    while (this.#text[quote - 1 - slashes] === '\\') slashes++;
    return slashes % 2 === 1;
  }

  #word(): JsonScalar {
    const word = /[^\s,\]}:[{"]*/y;
    word.lastIndex = this.#at;
    const text = word.exec(this.#text)?.[0] ?? '';
    this.#at += text.length;
    const value: unknown = JSON.parse(text);
    return { type: typeof value === 'number' ? 'number' : 'literal', text, value };
  }

  #space(): string {
    const start = this.#at;
    while (' \t\n\r'.includes(this.#text[this.#at] || '?')) this.#at++;
    return this.#text.slice(start, this.#at);
  }

  #expect(letter: string): void {
    if (this.#text[this.#at] !== letter) throw new SyntaxError();
    this.#at++;
  }
}

function join(spaces: Set<string>): string {
  spaces.delete('');
  return [...spaces].sort().join('|');
}

/** Of a key that comes twice the last value counts, as it does for whoever reads the document. */
export function membersOf({ members }: JsonObject): ReadonlyMap<string, JsonMember> {
  return new Map(members.map((member) => [member.key, member]));
}

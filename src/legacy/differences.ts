/** Sentences that are printed; all are counted. */
const maxShown = 20;

/** What differs, a sentence each; what has been said once is not said again. */
export class Differences {
  readonly shown: string[] = [];
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(sentence: string): void {
    if (this.shown.includes(sentence)) return;
    this.#count++;
    if (this.shown.length < maxShown) this.shown.push(sentence);
  }
}

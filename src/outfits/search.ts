// What can be searched for: words, and hashtags.

/** Most characters of a search, and of a hashtag: what the index keeps of one. */
export const maxLength = 100;

/** Scripts in which one character says as much as three letters, and symbols. */
const dense =
  /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Bopo}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{Emoji_Presentation}\p{RI}\u2600-\u27bf]/u;

/** The words of a search, each once. */
export function readWords(search: string): string[] {
  const words = search.normalize().split(/\s+/u);
  return [...new Set(words)].filter((word) => word !== '');
}

/** Whether the index finds a word without reading most of itself. */
export function isSearchable(word: string): boolean {
  return [...word].length >= 3 || dense.test(word);
}

/** @param text without `#` */
export function isHashtag(text: string): boolean {
  const { length } = [...text.normalize()];
  return length <= maxLength && /^[\p{L}\p{M}\p{N}_]+$/u.test(text);
}

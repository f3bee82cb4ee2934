/** Whether a text has more code points. It is measured by its length first: clients send megabytes. */
export function isLonger(text: string, max: number): boolean {
  return text.length > 2 * max || (text.length > max && [...text].length > max);
}

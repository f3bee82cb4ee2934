// What is a URL: settings, sources and pages read addresses with it.
import { expect, test } from 'vitest';
import { parseUrl } from '../../src/config/values.ts';

test('an address with letters beyond ASCII is one, however often it is asked', () => {
  const address = JSON.parse('"https://b\\u00fccher.example/shop/"') as string;
  const wrong = Array.from({ length: 100_000 }, () => parseUrl(address)).filter((url) => !url);
  expect(wrong).toHaveLength(0);
  expect(parseUrl(address)?.hostname).toBe('xn--bcher-kva.example');
  expect(parseUrl('no address')).toBeUndefined();
  expect(parseUrl('b', 'https://example.com/a')?.href).toBe('https://example.com/b');
});

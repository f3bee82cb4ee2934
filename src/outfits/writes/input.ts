// Validation of written outfits, with the error messages of Django REST Framework, which legacy apps display.
import { z } from 'zod';
import type { Config } from '../../config.ts';
import { isLonger } from '../length.ts';

// A file is stored by its key: its path on the host that serves it.
export const uuid = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}';
export const imageKey = new RegExp(`^outfits/${uuid}\\.(?:jpeg|png)$`);
export const videoKey = new RegExp(`^outfits_videos/${uuid}\\.mp4$`);
export const avatarKey = new RegExp(`^(?:|avatars/${uuid}\\.(?:jpeg|png|gif))$`);

export const devices = ['ios', 'android', 'web'] as const;

/** Maximum length in code points. */
export const maxLength = { title: 255, description: 10_000 } as const;

/** Unvalidated fields: images and videos as URLs or keys. Undefined: not given. */
export type OutfitInput = {
  readonly [Field in keyof CheckedInput]?: CheckedInput[Field] | null | undefined;
};

export interface InputError {
  readonly field: string;
  readonly messages: readonly string[];
}

/** Valid fields: images and videos as keys. Undefined: not given. */
export type CheckedInput = z.output<typeof changes>;

type Checked<Values> =
  | { readonly values: Values; readonly errors?: never }
  | { readonly values?: never; readonly errors: readonly InputError[] };

type Bases = Pick<Config, 'mediaUrl' | 'videoUrl'>;

export function checkNewOutfit(input: OutfitInput, bases: Bases): Checked<z.output<typeof whole>> {
  return check(whole, input, bases);
}

export function checkChanges(input: OutfitInput, bases: Bases): Checked<CheckedInput> {
  return check(changes, input, bases);
}

function missing({ input }: { readonly input?: unknown }): string {
  return input === null ? 'This field may not be null.' : 'This field is required.';
}

// White space as defined by Python's str.strip: without U+FEFF, with the separators U+001C to U+001F.
const space =
  '[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]';
const leading = new RegExp(`^${space}+`);
const spaceCharacter = new RegExp(space);

function trim(value: string): string {
  let end = value.length;
  // A regular expression anchored at the end would take quadratic time.
  while (end > 0 && spaceCharacter.test(value.charAt(end - 1))) end--;
  return value.slice(0, end).replace(leading, '');
}

/** @param findIssues returns error messages for the trimmed value */
const checked = (findIssues: (value: string) => readonly string[]) =>
  z
    .string({ error: missing })
    .transform(trim)
    .superRefine((value, { addIssue }) => {
      for (const message of findIssues(value)) addIssue(message);
    });

const text = (max: number) =>
  checked((value) => [
    ...(isLonger(value, max) ? [`Ensure this field has no more than ${max} characters.`] : []),
    ...findForbiddenCharacters(value),
  ]);

const formatted = (pattern: RegExp, message: string) =>
  checked((value) => {
    if (pattern.test(value)) return [];
    return value === ''
      ? ['This field may not be blank.']
      : [...findForbiddenCharacters(value), message];
  });

// PostgreSQL rejects NUL, and a lone surrogate would become U+FFFD.
function findForbiddenCharacters(value: string): string[] {
  const [surrogate] = /\p{Surrogate}/u.exec(value) ?? [];
  const code = surrogate?.charCodeAt(0).toString(16).toUpperCase();
  return [
    ...(value.includes('\0') ? ['Null characters are not allowed.'] : []),
    ...(code ? [`Surrogate characters are not allowed: U+${code}.`] : []),
  ];
}

const notAUrl = 'Enter a valid URL.';

// The order of the fields on the wire is also the order of the errors.
const whole = z.object({
  title: text(maxLength.title).exactOptional(),
  description: text(maxLength.description).exactOptional(),
  imageKey: formatted(imageKey, notAUrl),
  imageOriginalUrl: formatted(imageKey, notAUrl).exactOptional(),
  private: z.boolean({ error: missing }).exactOptional(),
  backgroundColor: formatted(
    /^(?:|#[0-9a-f]{3}|#[0-9a-f]{6})$/,
    'This value does not match the required pattern.',
  ).exactOptional(),
  video: formatted(videoKey, notAUrl).nullable().exactOptional(),
  device: z.enum(devices, { error: missing }).exactOptional(),
});

const changes = whole.extend({ imageKey: whole.shape.imageKey.exactOptional() });

function check<Values>(
  schema: z.ZodType<Values>,
  input: OutfitInput,
  { mediaUrl, videoUrl }: Bases,
): Checked<Values> {
  const strip = (value: string | null | undefined, base: string) => {
    const trimmed = typeof value === 'string' ? trim(value) : value;
    return trimmed?.startsWith(`${base}/`) ? trimmed.slice(base.length + 1) : trimmed;
  };
  const keys = {
    ...input,
    imageKey: strip(input.imageKey, mediaUrl),
    imageOriginalUrl: strip(input.imageOriginalUrl, mediaUrl),
    video: strip(input.video, videoUrl),
  };
  const given = Object.entries(keys).filter(([, value]) => value !== undefined);
  const result = schema.safeParse(Object.fromEntries(given));
  if (result.success) return { values: result.data };
  const { issues } = result.error;
  const fields = [...new Set(issues.map(({ path }) => String(path[0])))];
  return {
    errors: fields.map((field) => ({
      field,
      messages: issues.filter(({ path }) => path[0] === field).map(({ message }) => message),
    })),
  };
}

// Validation of written outfits. REST has the sentences of Django REST Framework for the codes (rest/create.ts).
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { isLonger } from '../filter.ts';

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

export const inputErrorCodes = {
  REQUIRED: 'The field is missing, and has no default.',
  BLANK: 'The field is empty, which it must not be.',
  TOO_LONG: 'The text has more characters than the field allows.',
  FORBIDDEN_CHARACTERS: 'The text has a NUL character or a lone surrogate.',
  FOREIGN_URL: 'The URL is not below the media host; of a video, below the video host.',
  INVALID_KEY: 'This is not the path of an image or a video.',
  INVALID_COLOR: 'It is not a lower-case hex colour.',
} as const;

export type InputErrorCode = keyof typeof inputErrorCodes;

/** What is wrong with a field by one code. */
export interface InputError {
  readonly field: string;
  readonly code: InputErrorCode;
  /** Several of FORBIDDEN_CHARACTERS only. */
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

const required = 'This field is required.';

const fault = (code: InputErrorCode, message: string) =>
  ({ code: 'custom', message, params: { code } }) as const;

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

/** @param findFaults in the trimmed value */
const checked = (findFaults: (value: string) => readonly ReturnType<typeof fault>[]) =>
  z
    .string(required)
    .transform(trim)
    .superRefine((value, { addIssue }) => {
      for (const found of findFaults(value)) addIssue(found);
    });

const text = (max: number) =>
  checked((value) => [
    ...(isLonger(value, max) ? [fault('TOO_LONG', `At most ${max} characters are allowed.`)] : []),
    ...findForbiddenCharacters(value),
  ]);

const formatted = (pattern: RegExp, describe: (value: string) => ReturnType<typeof fault>) =>
  checked((value) => {
    if (pattern.test(value)) return [];
    return value === ''
      ? [fault('BLANK', 'This field must not be empty.')]
      : [...findForbiddenCharacters(value), describe(value)];
  });

/** In messages, for the base of the field's URLs. */
const base = '<base>';

const file = (pattern: RegExp, path: string) =>
  formatted(pattern, (value) =>
    /^[a-z][a-z0-9+.-]*:/i.test(value)
      ? fault('FOREIGN_URL', `The URL must begin with ${base}/.`)
      : fault('INVALID_KEY', `The URL must be ${base}/${path}, or only that path.`),
  );

// PostgreSQL rejects NUL, and a lone surrogate would become U+FFFD.
function findForbiddenCharacters(value: string) {
  const [surrogate] = /\p{Surrogate}/u.exec(value) ?? [];
  const code = surrogate?.charCodeAt(0).toString(16).toUpperCase();
  return [
    ...(value.includes('\0') ? ['Null characters are not allowed.'] : []),
    ...(code ? [`Surrogate characters are not allowed: U+${code}.`] : []),
  ].map((message) => fault('FORBIDDEN_CHARACTERS', message));
}

const image = file(imageKey, 'outfits/<uuid>.jpeg or .png');

// The order of the fields on the wire is also the order of the errors.
const whole = z.object({
  title: text(maxLength.title).exactOptional(),
  description: text(maxLength.description).exactOptional(),
  imageKey: image,
  imageOriginalUrl: image.exactOptional(),
  private: z.boolean(required).exactOptional(),
  backgroundColor: formatted(/^(?:|#[0-9a-f]{3}|#[0-9a-f]{6})$/, () =>
    fault('INVALID_COLOR', 'A colour is #rgb or #rrggbb, in lower case, or empty.'),
  ).exactOptional(),
  video: file(videoKey, 'outfits_videos/<uuid>.mp4').nullable().exactOptional(),
  device: z.enum(devices, required).exactOptional(),
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
  const errors = new Map<string, InputError & { readonly messages: string[] }>();
  for (const issue of result.error.issues) {
    const field = String(issue.path[0]);
    const code: InputErrorCode = (issue.code === 'custom' && issue.params?.['code']) || 'REQUIRED';
    const message = issue.message.replace(base, () => (field === 'video' ? videoUrl : mediaUrl));
    const key = `${field} ${code}`;
    errors.set(key, { field, code, messages: [...(errors.get(key)?.messages ?? []), message] });
  }
  return { errors: [...errors.values()] };
}

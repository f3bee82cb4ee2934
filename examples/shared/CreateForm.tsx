// A form that shows what is wrong beside each field.
import { type FormEvent, useState } from 'react';
import { upload } from './upload.ts';

export interface InputError {
  readonly field: string;
  /** For sentences of your own; `messages` are in English. */
  readonly code: string;
  readonly messages: readonly string[];
}

export interface NewOutfit {
  readonly title: string;
  readonly backgroundColor: string;
  readonly imageKey: string | null;
}

interface Properties {
  /** @param key of what is in the form: the same again for a retry, so that nothing is published twice */
  readonly create: (input: NewOutfit, key: string) => Promise<readonly InputError[]>;
}

const fields = [
  ['title', 'Title'],
  ['backgroundColor', 'Background, such as #f1e7da'],
  ['imageKey', 'Image: its URL or key'],
] as const;

export function CreateForm({ create }: Properties) {
  const [errors, setErrors] = useState<readonly InputError[]>([]);
  const [failure, setFailure] = useState('');
  const [key, setKey] = useState(() => crypto.randomUUID());
  const renewKey = () => setKey(crypto.randomUUID());

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    const data = new FormData(form);
    const file = data.get('file');
    try {
      const hasFile = file instanceof File && file.size > 0;
      const found = await create(
        {
          title: String(data.get('title')),
          backgroundColor: String(data.get('backgroundColor')),
          // null: not filled in, which is an error of the field, REQUIRED.
          imageKey: hasFile ? await upload(file) : String(data.get('imageKey')) || null,
        },
        key,
      );
      setErrors(found);
      setFailure('');
      if (found.length > 0) return;
      form.reset();
      renewKey();
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
    }
  }

  return (
    // Another input is another request. After a failure, a press without a change is the same one again.
    <form onSubmit={submit} onInput={renewKey}>
      {fields.map(([name, label]) => {
        const found = errors.filter(({ field }) => field === name);
        return (
          <p key={name}>
            <label>
              {label}
              <input
                name={name}
                aria-invalid={found.length > 0}
                aria-describedby={`${name}-errors`}
              />
            </label>
            <span id={`${name}-errors`} role="alert">
              {found.flatMap(({ messages }) => messages).join(' ')}
            </span>
          </p>
        );
      })}
      <p>
        <label>
          or a file <input name="file" type="file" accept="image/jpeg,image/png" />
        </label>
      </p>
      <button type="submit">Publish</button>
      <p role="alert">{failure}</p>
    </form>
  );
}

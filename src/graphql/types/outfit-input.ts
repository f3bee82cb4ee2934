// CreateOutfitInput, UpdateOutfitInput, InputError, Device.
import type { InputFieldBuilder } from '@pothos/core';
import {
  devices,
  type InputError,
  type InputErrorCode,
  inputErrorCodes,
  maxLength,
} from '../../outfits/writes/input.ts';
import { builder } from '../builder.ts';

export const Device = builder.enumType('Device', {
  description: 'Device from which an outfit is published or changed.',
  values: {
    IOS: { value: devices[0], description: 'An iPhone or iPad.' },
    ANDROID: { value: devices[1], description: 'An Android device.' },
    WEB: { value: devices[2], description: 'A web browser; the default.' },
  },
});

const codes = Object.entries(inputErrorCodes).map(
  ([code, description]) => [code, { value: code as InputErrorCode, description }] as const,
);

const InputErrorCodeRef = builder.enumType('InputErrorCode', {
  description: 'What is wrong with the value of an input field.',
  values: Object.fromEntries(codes),
});

export const InputErrorRef = builder.objectRef<InputError>('InputError').implement({
  description:
    'What is wrong with the value of one input field, to be shown at it. A field has one error for each code.',
  fields: (t) => ({
    field: t.exposeString('field', { description: 'Name of the field in the input.' }),
    code: t.expose('code', {
      type: InputErrorCodeRef,
      description: 'For programs, such as an app that shows sentences of its own language.',
    }),
    messages: t.exposeStringList('messages', {
      description: 'For people: a sentence that names the rule, seldom two.',
    }),
  }),
});

type Fields = InputFieldBuilder<typeof builder.$inferSchemaTypes, 'InputObject'>;

const exampleImage = 'outfits/0f8fad5b-d9cb-469f-a165-70867728950e.jpeg';

// `extensions` are for REST, which reads these fields from forms and describes them. None is non-null, so that a missing
// field is an InputError like any other.
const content = (t: Fields, isNew: boolean) => ({
  title: t.string({
    description: `At most ${maxLength.title} characters; may be empty.`,
    extensions: { maxLength: maxLength.title, mayBeBlank: true },
  }),
  description: t.string({
    description: `At most ${maxLength.description} characters; may be empty.`,
    extensions: { maxLength: maxLength.description, mayBeBlank: true },
  }),
  imageKey: t.string({
    description: `Absolute URL of the image below the media host, or its key, \`outfits/<uuid>.<jpeg|png>\`.${isNew ? ' Required.' : ''}`,
    extensions: { required: isNew, example: exampleImage },
  }),
  imageOriginalUrl: t.string({
    description: `The same for the image as it was uploaded. When omitted, equal to imageKey${isNew ? '' : ', if that is given'}.`,
    extensions: { example: exampleImage },
  }),
  private: t.boolean({
    description: `Whether the outfit is private${isNew ? '; false when omitted' : ''}.`,
  }),
  backgroundColor: t.string({
    description: 'Empty, or a lower-case hex colour: `#rgb` or `#rrggbb`.',
    extensions: { mayBeBlank: true, example: '#f1e7da' },
  }),
  video: t.string({
    description: `Absolute URL of the video below the video host, or its key, \`outfits_videos/<uuid>.mp4\`${isNew ? '; none when omitted' : '; null removes it'}.`,
    extensions: { mayBeNull: true, example: null },
  }),
  device: t.field({
    type: Device,
    description: `Device of ${isNew ? 'publication' : 'this change'}; WEB when omitted.`,
  }),
});

export const CreateOutfitInput = builder.inputType('CreateOutfitInput', {
  description: 'A new outfit. A field that is null counts as omitted.',
  fields: (t) => content(t, true),
});

export const UpdateOutfitInput = builder.inputType('UpdateOutfitInput', {
  description:
    'Changes to an outfit; fields that are omitted or null keep their values, but `video: null` removes the video.',
  fields: (t) => content(t, false),
});

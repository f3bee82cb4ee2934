// The card of an outfit: its picture and its fields.
import { z } from 'zod';
import type { OutfitRecordFragment } from '../../generated/rest.ts';
import { Icon, loadingOf, type Media, pictureAddressOf } from './pictures.tsx';
import type { Site } from './site.ts';
import { shownText, Text, visibleText } from './text.tsx';

const text = z.string();
const outfitRecord = z.object({
  ...{ id: z.number(), likes: z.number(), video: text.nullable() },
  ...{ title: text, description: text, image_key: text, created: text },
  user: z.object({
    ...{ id: z.number(), avatar_key: text },
    ...{ username: text, first_name: text, last_name: text },
  }),
});

/** Whether a record has the fields of an outfit: other paths have other records. */
export function isOutfit(value: unknown): value is OutfitRecordFragment {
  return outfitRecord.safeParse(value).success;
}

interface OutfitProperties {
  readonly outfit: OutfitRecordFragment;
  readonly site: Site;
}

interface CardProperties extends OutfitProperties {
  /** Place in the list. */
  readonly index: number;
}

/** Its title is a link that covers the card; the links to the user and the video lie above. */
export function OutfitCard({ outfit, site, index }: CardProperties) {
  const { id, title, description } = outfit;
  return (
    <li>
      <article class="card" id={`outfit-${id}`}>
        <Picture outfit={outfit} media={site.media} index={index} />
        <Marks outfit={outfit} site={site} />
        <div class="about">
          <h2 dir="auto">
            <a href={`${site.root}/outfits/${id}`}>
              {visibleText(title) ?? <span class="soft">Without a title</span>}
            </a>
          </h2>
          {description && (
            <p class="description" dir="auto">
              {shownText(description)}
            </p>
          )}
          <Owner outfit={outfit} site={site} />
          <Facts outfit={outfit} />
        </div>
      </article>
    </li>
  );
}

export function Marks({ outfit, site }: OutfitProperties) {
  return (
    <p class="marks">
      {outfit.private && (
        <span class="mark">
          <Icon name="lock" /> Private
        </span>
      )}
      {outfit.video !== null && <VideoMark video={outfit.video} media={site.media} />}
    </p>
  );
}

export function Facts({ outfit: { likes, created } }: Pick<OutfitProperties, 'outfit'>) {
  return (
    <p class="facts">
      <span class="likes">
        <Icon name="heart" /> {likes.toLocaleString('en')}{' '}
        <span class="hidden">{likes === 1 ? 'like' : 'likes'}</span>
      </span>
      <Moment of={created} />
    </p>
  );
}

interface PictureProperties extends Pick<CardProperties, 'outfit' | 'index'> {
  readonly media: Media;
  /** Whether it links to the whole picture. */
  readonly isLink?: boolean;
}

/** The picture on a background in the colour of the outfit, with a hanger as the placeholder. */
export function Picture({ outfit, media, index, isLink = false }: PictureProperties) {
  const { id, title, image_key, background_color: color } = outfit;
  const image = pictureAddressOf(image_key, media);
  const alt = `Picture of ${visibleText(title.slice(0, 200)) ?? `outfit ${id}`}`;
  const shown = image && (
    <img src={image} alt={alt} {...loadingOf(index)} width="400" height="500" />
  );
  return (
    <div class="picture">
      {/^#(?:[\da-f]{3}|[\da-f]{6})$/i.test(color) && (
        <svg class="color" aria-hidden="true" focusable="false">
          <rect width="100%" height="100%" fill={color} />
        </svg>
      )}
      <Icon name="hanger" />
      {isLink && image ? (
        <a href={image} rel="noreferrer">
          {shown}
        </a>
      ) : (
        shown
      )}
    </div>
  );
}

function VideoMark({ video, media }: { readonly video: string; readonly media: Media }) {
  const address = pictureAddressOf(video, media);
  if (!address) return <span class="mark">Video</span>;
  return (
    <a class="mark" href={address} rel="noreferrer">
      <Icon name="play" /> Video
    </a>
  );
}

interface UserProperties {
  readonly user: Omit<OutfitRecordFragment['user'], 'id'>;
  readonly media: Media;
}

/** Undefined: the user has given none. */
export function nameOf({ first_name, last_name }: UserProperties['user']): string | undefined {
  return visibleText(`${first_name} ${last_name}`.trim());
}

export function Avatar({ user, media }: UserProperties) {
  const { username, avatar_key } = user;
  const [initial = ''] = nameOf(user) ?? shownText(username);
  const avatar = avatar_key
    ? pictureAddressOf(`${media.pictures}/${avatar_key}`, media)
    : undefined;
  return (
    <span class="avatar">
      <span aria-hidden="true">{initial.toUpperCase()}</span>
      {avatar && <img src={avatar} alt="" loading="lazy" decoding="async" width="32" height="32" />}
    </span>
  );
}

/** The user of an outfit, as a link to the page of the user. */
export function Owner({ outfit: { user }, site }: OutfitProperties) {
  const name = nameOf(user);
  return (
    <p class="owner">
      <Avatar user={user} media={site.media} />
      <a class="names" href={`${site.root}/users/${user.id}`}>
        {name && (
          <span class="name">
            <Text>{name}</Text>
          </span>
        )}
        <span class="username">
          @<Text>{user.username}</Text>
        </span>
      </a>
    </p>
  );
}

const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });
const minute = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'long',
  timeStyle: 'short',
  timeZone: 'UTC',
});

function Moment({ of: text }: { readonly of: string }) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return <Text>{text}</Text>;
  return (
    <time dateTime={text} title={`${minute.format(date)} UTC`}>
      {day.format(date)}
    </time>
  );
}

// The card of an outfit: its picture and its fields.
import { z } from 'zod';
import type { OutfitRecordFragment } from '../../generated/rest.ts';
import { Icon, type Media, pictureAddressOf } from './pictures.tsx';
import { shownText, Text, visibleText } from './text.tsx';

const text = z.string();
const outfitRecord = z.object({
  ...{ id: z.number(), likes: z.number(), video: text.nullable() },
  ...{ title: text, description: text, image_key: text, created: text },
  user: z.object({ username: text, first_name: text, last_name: text, avatar_key: text }),
});

/** Whether a record has the fields of an outfit: other paths have other records. */
export function isOutfit(value: unknown): value is OutfitRecordFragment {
  return outfitRecord.safeParse(value).success;
}

interface CardProperties {
  readonly outfit: OutfitRecordFragment;
  readonly media: Media;
}

export function OutfitCard({ outfit, media }: CardProperties) {
  const { id, title, description, likes, video, created } = outfit;
  return (
    <li>
      <article class="card" id={`outfit-${id}`}>
        <Picture outfit={outfit} media={media} />
        <p class="marks">
          {outfit.private && (
            <span class="mark">
              <Icon name="lock" /> Private
            </span>
          )}
          {video !== null && <VideoMark video={video} media={media} />}
        </p>
        <div class="about">
          <h2 dir="auto">{visibleText(title) ?? <span class="soft">Without a title</span>}</h2>
          {description && (
            <p class="description" dir="auto">
              {shownText(description)}
            </p>
          )}
          <Owner outfit={outfit} media={media} />
          <p class="facts">
            <span class="likes">
              <Icon name="heart" /> {likes.toLocaleString('en')}{' '}
              <span class="hidden">{likes === 1 ? 'like' : 'likes'}</span>
            </span>
            <Moment of={created} />
          </p>
        </div>
      </article>
    </li>
  );
}

/** The picture on a background in the colour of the outfit, with a hanger as the placeholder. */
function Picture({ outfit, media }: CardProperties) {
  const { id, title, image_key, background_color: color } = outfit;
  const image = pictureAddressOf(image_key, media);
  const alt = `Picture of ${visibleText(title.slice(0, 200)) ?? `outfit ${id}`}`;
  return (
    <div class="picture">
      {/^#(?:[\da-f]{3}|[\da-f]{6})$/i.test(color) && (
        <svg class="color" aria-hidden="true" focusable="false">
          <rect width="100%" height="100%" fill={color} />
        </svg>
      )}
      <Icon name="hanger" />
      {image && (
        <a href={image} rel="noreferrer">
          <img src={image} alt={alt} loading="lazy" decoding="async" width="400" height="500" />
        </a>
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

function Owner({ outfit, media }: CardProperties) {
  const { username, first_name, last_name, avatar_key } = outfit.user;
  const name = visibleText(`${first_name} ${last_name}`.trim());
  const [initial = ''] = name ?? shownText(username);
  const avatar = avatar_key
    ? pictureAddressOf(`${media.pictures}/${avatar_key}`, media)
    : undefined;
  return (
    <p class="owner">
      <span class="avatar">
        <span aria-hidden="true">{initial.toUpperCase()}</span>
        {avatar && (
          <img src={avatar} alt="" loading="lazy" decoding="async" width="32" height="32" />
        )}
      </span>
      <span class="names">
        {name && (
          <span class="name">
            <Text>{name}</Text>
          </span>
        )}
        <span class="username">
          @<Text>{username}</Text>
        </span>
      </span>
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

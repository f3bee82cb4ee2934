// Outfits on a page: the list with its count and the way to other pages, the card of one, the parts of its page, and rows of pictures.
import type { NumberedPageFragment, OutfitRecordFragment } from '../../generated/rest.ts';
import { formatQuery, type QueryParameters } from '../../rest/variables.ts';
import type { Site } from './layout.tsx';
import { Icon, type Media, pictureAddressOf } from './pictures.tsx';
import { searchOf } from './search-form.tsx';
import { shownText, Text, visibleText } from './text.tsx';

/** Of the outfits beside one, these come before it: some more than one, as others may have been published since. */
export const before = 5;

/** The page of the outfit at a place in a list, from 0: it leads to those beside it there, and back. */
export function outfitPath({ root }: Site, id: number, list: QueryParameters, place: number) {
  const offset = String(Math.max(place - before, 0));
  return `${root}/outfits/${id}?${formatQuery(searchOf(list), 'offset', offset)}`;
}

interface OutfitProperties {
  readonly outfit: OutfitRecordFragment;
  readonly site: Site;
}

interface CardProperties extends OutfitProperties {
  readonly href: string;
  /** Place in the list. */
  readonly index: number;
}

/** Its title is a link that covers the card; the links to the user and the video lie above. */
function OutfitCard({ outfit, site, href, index }: CardProperties) {
  const { id, title, description } = outfit;
  return (
    <li>
      <article class="card" id={`outfit-${id}`}>
        <Picture {...{ outfit, index, site }} />
        <Marks outfit={outfit} site={site} />
        <div class="about">
          <h2 dir="auto">
            <a href={href}>{visibleText(title) ?? <span class="soft">Without a title</span>}</a>
          </h2>
          {description && (
            <p class="description" dir="auto">
              {shownText(description)}
            </p>
          )}
          <Owner user={outfit.user} site={site} />
          <Facts outfit={outfit} />
        </div>
      </article>
    </li>
  );
}

export function Marks({ outfit: { video, ...outfit }, site }: OutfitProperties) {
  const address = video === null ? undefined : pictureAddressOf(video, site.media);
  return (
    <p class="marks">
      {outfit.private && (
        <span class="mark">
          <Icon name="lock" /> Private
        </span>
      )}
      {address && (
        <a class="mark" href={address} rel="noreferrer">
          <Icon name="play" /> Video
        </a>
      )}
    </p>
  );
}

const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });

export function Facts({ outfit: { likes, created } }: Pick<OutfitProperties, 'outfit'>) {
  return (
    <p class="facts">
      <span>
        <Icon name="heart" /> {likes.toLocaleString('en')}{' '}
        <span class="hidden">{likes === 1 ? 'like' : 'likes'}</span>
      </span>
      <time dateTime={created}>{day.format(new Date(created))}</time>
    </p>
  );
}

type Pictured = Pick<OutfitRecordFragment, 'background_color' | 'id' | 'image_key' | 'title'>;

interface PictureProperties {
  readonly outfit: Pictured;
  readonly site: Site;
  readonly index: number;
  /** Where it leads. */
  readonly href?: string | undefined;
}

/** The picture on a background in the colour of the outfit, with a hanger as the placeholder. */
export function Picture({ outfit, site, index, href }: PictureProperties) {
  const { image_key, background_color: color } = outfit;
  const source = pictureAddressOf(image_key, site.media);
  const image = source && (
    <img
      src={source}
      alt={nameOf(outfit)}
      {...{ width: 400, height: 500, decoding: 'async' }}
      // The first row of pictures is loaded before everything else, and the others when they come near.
      {...(index < 4 ? { fetchpriority: 'high' } : { loading: 'lazy' })}
    />
  );
  return (
    <div class="picture">
      {/^#(?:[\da-f]{3}|[\da-f]{6})$/i.test(color) && (
        <svg class="color" aria-hidden="true" focusable="false">
          <rect width="100%" height="100%" fill={color} />
        </svg>
      )}
      <Icon name="hanger" />
      {href ? <a href={href}>{image ?? nameOf(outfit)}</a> : image}
    </div>
  );
}

interface StripProperties {
  readonly outfits: readonly Pictured[];
  readonly site: Site;
  /** What makes the list that they begin. */
  readonly list: QueryParameters;
}

/** A row of pictures, each a link to the page of its outfit. */
export const Strip = ({ outfits, site, list }: StripProperties) => (
  <ul class="strip">
    {outfits.map((outfit, index) => (
      <li>
        <Picture {...{ outfit, index, site }} href={outfitPath(site, outfit.id, list, index)} />
      </li>
    ))}
  </ul>
);

/** Its title, or its number. */
export function nameOf({ id, title }: Pick<Pictured, 'id' | 'title'>): string {
  return visibleText(title) ?? `Outfit ${id}`;
}

interface UserProperties {
  readonly user: Omit<OutfitRecordFragment['user'], 'id'>;
  readonly media: Media;
}

/** Undefined: the user has given none. */
export function fullNameOf({ first_name, last_name }: UserProperties['user']): string | undefined {
  return visibleText(`${first_name} ${last_name}`.trim());
}

export function Avatar({ user, media }: UserProperties) {
  const { username, avatar_key } = user;
  const [initial = ''] = fullNameOf(user) ?? shownText(username);
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

interface OwnerProperties {
  readonly user: OutfitRecordFragment['user'];
  readonly site: Site;
}

/** The user of an outfit, as a link to the page of the user. */
export function Owner({ user, site }: OwnerProperties) {
  const name = fullNameOf(user);
  return (
    <p class="owner">
      <Avatar user={user} media={site.media} />
      <a class="names" href={`${site.root}/outfits/?user=${user.id}`}>
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

interface OutfitsProperties {
  readonly list: NumberedPageFragment;
  readonly site: Site;
  readonly parameters: QueryParameters;
}

export function Outfits({ list, site, parameters }: OutfitsProperties) {
  const { count, page, pageCount: pages, results } = list;
  const to = (number: number) =>
    number < 1 || number > pages || number === page
      ? null
      : `?${formatQuery(parameters, 'page', String(number))}`;
  const steps = { First: to(1), Previous: to(page - 1), Next: to(page + 1), Last: to(pages) };
  const kept = parameters.filter(([name]) => name !== 'page');
  const start = (page - 1) * site.config.pageSize;
  return (
    <>
      <div class="bar">
        <p class="count">
          {count.toLocaleString('en')} {count === 1 ? 'outfit' : 'outfits'}
        </p>
        <Pagination label="Pages" steps={steps} />
      </div>
      <ul class="grid">
        {results.map((outfit, index) => {
          const href = outfitPath(site, outfit.id, parameters, start + index);
          return <OutfitCard {...{ outfit, site, href, index }} />;
        })}
      </ul>
      {pages > 1 && (
        <form class="menu" method="get">
          <Pagination label="Pages, below the list" steps={steps} />
          {kept.map(([name, value]) => (
            <input type="hidden" name={name} value={value} />
          ))}
          <label for="page">Page</label>
          <input id="page" type="number" name="page" min={1} max={pages} value={page} />
          <span>of {pages.toLocaleString('en')}</span>
          <button type="submit">Go</button>
        </form>
      )}
    </>
  );
}

interface PaginationProperties {
  /** Distinguishes two of them on one page, for screen readers. */
  readonly label: string;
  /** Addresses of other pages by their names; null: there is no such page. */
  readonly steps: Readonly<Record<string, string | null>>;
}

export const Pagination = ({ label, steps }: PaginationProperties) => (
  <nav aria-label={label}>
    <ul class="pagination">
      {Object.entries(steps).map(([title, href]) => (
        <li>
          {href === null ? (
            <span class="step">{title}</span>
          ) : (
            <a class="step" href={href}>
              {title}
            </a>
          )}
        </li>
      ))}
    </ul>
  </nav>
);

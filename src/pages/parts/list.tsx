// The list of outfits on a page: cards, their count, and the way to other pages.
import type { NumberedPageFragment } from '../../generated/rest.ts';
import { formatQuery, type QueryParameters } from '../../rest/url.ts';
import type { Site } from './layout.tsx';
import { OutfitCard, outfitPath } from './outfit.tsx';

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

// One outfit, with buttons for what the viewer may do.

export interface CardOutfit {
  readonly id: string;
  readonly title: string;
  readonly imageKey: string;
  readonly likes: number;
  readonly viewerHasLiked: boolean;
  readonly viewerCanUpdate: boolean;
  readonly user: { readonly username: string; readonly avatarUrl?: string | null };
}

interface Properties {
  readonly outfit: CardOutfit;
  readonly setLiked: (liked: boolean) => void;
  readonly remove: () => void;
}

export function Card({ outfit, setLiked, remove }: Properties) {
  const { title, imageKey, likes, viewerHasLiked, viewerCanUpdate, user } = outfit;
  return (
    <article>
      <img src={imageKey} alt="" width="160" height="200" loading="lazy" />
      <h2 dir="auto">{title || 'Without a title'}</h2>
      <p>
        {user.avatarUrl && <img src={user.avatarUrl} alt="" width="24" height="24" />}@
        {user.username}
      </p>
      <button type="button" aria-pressed={viewerHasLiked} onClick={() => setLiked(!viewerHasLiked)}>
        ♥ {likes}
      </button>
      {viewerCanUpdate && (
        <button type="button" onClick={remove}>
          Delete
        </button>
      )}
    </article>
  );
}

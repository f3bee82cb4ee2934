-- Makes all buckets and groups anew, from the outfits of the table minus pending changes.
CREATE FUNCTION recount_outfits() RETURNS void
LANGUAGE sql AS $$
  SELECT empty_outfit_buckets();
  SELECT cut_outfit_buckets(b.ordering, ARRAY[b]) FROM outfit_bucket_ranges b WHERE NOT b.is_group;
  SELECT group_outfit_buckets(o.ordering) FROM outfit_orderings o;
  UPDATE outfit_counts_state SET is_misshapen = false;
$$;

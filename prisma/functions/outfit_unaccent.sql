-- A case-folded text without accents of Latin letters, for search: the marks U+0300 to U+036F after a Latin letter are
-- dropped, and letters that have no such mark are replaced by the table below (src/outfits/filters.md). It calls no other
-- function, because indexes call it with any search_path.
CREATE FUNCTION outfit_unaccent(folded text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  -- ASCII has no accents, and most texts are ASCII.
  IF octet_length(folded) = length(folded) THEN
    RETURN folded;
  END IF;
  folded := translate(normalize(folded, NFD), 'øłđðħŧı', 'olddhti');
  folded := replace(replace(replace(replace(replace(folded, 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th'), 'ĳ', 'ij');
  RETURN normalize(regexp_replace(folded,
    '(?<=[a-z\u00df-\u00f6\u00f8-\u02af\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff])[\u0300-\u036f]+', '', 'g'));
END $$;

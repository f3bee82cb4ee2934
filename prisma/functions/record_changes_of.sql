-- Records the changes of a table with a primary key from now on, replicated ones too. To be run again after a restore
-- that ends with ENABLE TRIGGER ALL, or with another primary key.
CREATE FUNCTION record_changes_of(target regclass) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER record_changed AFTER INSERT OR UPDATE OR DELETE ON %s
    FOR EACH ROW EXECUTE FUNCTION record_row_change(%s)', target,
    (SELECT string_agg(quote_literal(attname), ', ' ORDER BY array_position(indkey::int2[], attnum))
     FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey) WHERE indrelid = target AND indisprimary));
  EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER record_changed', target);
END $$;

-- Outfits in a bucket after a cut. A bucket with more than twice as many is cut; a group whose buckets have less than a
-- quarter of it is cut anew, into fewer.
CREATE FUNCTION outfit_bucket_size() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT 500';

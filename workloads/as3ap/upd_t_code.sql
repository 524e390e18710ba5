-- Changes what an index is over, and back.
\set key random(2, 4999)
BEGIN;
update updates set col_code = 'SQL+GROUPS' where col_key = :key;
update updates set col_code = concat(1000000000 + (col_key * 179424673) % 1000000007, '') where col_key = :key;
END;

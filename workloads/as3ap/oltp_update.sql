-- The OLTP of the multi-user tests.
\set half random(0, 1)
\set key random(0, 5000 * :scale - 1) + :half * (5000 * :scale + 10000)
update updates set col_signed = col_signed + 1 where col_key = :key;

-- The information retrieval of the multi-user tests.
\set half random(0, 1)
\set key random(0, 5000 * :scale - 1) + :half * (5000 * :scale + 10000)
select col_key, col_code, col_date, col_signed, col_name from updates where col_key = :key;

-- Reads up to 100 records in the order of their keys.
\set hot random_zipfian(1, 1000 * :scale, 1.001)
\set id 1000000000 + permute(:hot - 1, 1000 * :scale, 7)
\set count random(1, 100)
SELECT * FROM usertable WHERE ycsb_key >= concat('user', cast(:id as char(10))) ORDER BY ycsb_key LIMIT :count;

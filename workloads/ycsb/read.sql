-- Reads a record; few are read often, and they lie anywhere.
\set hot random_zipfian(1, 1000 * :scale, 1.001)
\set id 1000000000 + permute(:hot - 1, 1000 * :scale, 7)
SELECT * FROM usertable WHERE ycsb_key = concat('user', cast(:id as char(10)));

-- Reads a record and then changes a field of it, each as its own transaction, as YCSB does.
\set hot random_zipfian(1, 1000 * :scale, 1.001)
\set id 1000000000 + permute(:hot - 1, 1000 * :scale, 7)
\set a random(1000000000000000000, 9000000000000000000)
\set b random(1000000000000000000, 9000000000000000000)
\set c random(1000000000000000000, 9000000000000000000)
\set d random(1000000000000000000, 9000000000000000000)
\set e random(1000000000000000000, 9000000000000000000)
\set f random(10000, 99999)
SELECT * FROM usertable WHERE ycsb_key = concat('user', cast(:id as char(10)));
UPDATE usertable SET field0 = concat(
    cast(:a as char(19)), cast(:b as char(19)), cast(:c as char(19)), cast(:d as char(19)), cast(:e as char(19)),
    cast(:f as char(5)))
  WHERE ycsb_key = concat('user', cast(:id as char(10)));

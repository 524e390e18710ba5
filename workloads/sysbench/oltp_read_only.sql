-- oltp_read_only of sysbench 1.0 with its defaults, for a table of 10,000 * :scale rows
\set id0 random(1, 10000 * :scale)
\set id1 random(1, 10000 * :scale)
\set id2 random(1, 10000 * :scale)
\set id3 random(1, 10000 * :scale)
\set id4 random(1, 10000 * :scale)
\set id5 random(1, 10000 * :scale)
\set id6 random(1, 10000 * :scale)
\set id7 random(1, 10000 * :scale)
\set id8 random(1, 10000 * :scale)
\set id9 random(1, 10000 * :scale)
\set simple random(1, 10000 * :scale)
\set simple_end :simple + 99
\set sum random(1, 10000 * :scale)
\set sum_end :sum + 99
\set order random(1, 10000 * :scale)
\set order_end :order + 99
\set distinct random(1, 10000 * :scale)
\set distinct_end :distinct + 99
BEGIN;
SELECT c FROM sbtest1 WHERE id = :id0;
SELECT c FROM sbtest1 WHERE id = :id1;
SELECT c FROM sbtest1 WHERE id = :id2;
SELECT c FROM sbtest1 WHERE id = :id3;
SELECT c FROM sbtest1 WHERE id = :id4;
SELECT c FROM sbtest1 WHERE id = :id5;
SELECT c FROM sbtest1 WHERE id = :id6;
SELECT c FROM sbtest1 WHERE id = :id7;
SELECT c FROM sbtest1 WHERE id = :id8;
SELECT c FROM sbtest1 WHERE id = :id9;
SELECT c FROM sbtest1 WHERE id BETWEEN :simple AND :simple_end;
SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN :sum AND :sum_end;
SELECT c FROM sbtest1 WHERE id BETWEEN :order AND :order_end ORDER BY c;
SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN :distinct AND :distinct_end ORDER BY c;
COMMIT;

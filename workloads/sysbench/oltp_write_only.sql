-- oltp_write_only of sysbench 1.0 with its defaults, for a table of 10,000 * :scale rows
\set indexed random(1, 10000 * :scale)
\set changed random(1, 10000 * :scale)
\set c0 random(10000000000, 99999999999)
\set c1 random(10000000000, 99999999999)
\set c2 random(10000000000, 99999999999)
\set c3 random(10000000000, 99999999999)
\set c4 random(10000000000, 99999999999)
\set c5 random(10000000000, 99999999999)
\set c6 random(10000000000, 99999999999)
\set c7 random(10000000000, 99999999999)
\set c8 random(10000000000, 99999999999)
\set c9 random(10000000000, 99999999999)
\set renewed random(1, 10000 * :scale)
\set k random(1, 10000 * :scale)
\set n0 random(10000000000, 99999999999)
\set n1 random(10000000000, 99999999999)
\set n2 random(10000000000, 99999999999)
\set n3 random(10000000000, 99999999999)
\set n4 random(10000000000, 99999999999)
\set n5 random(10000000000, 99999999999)
\set n6 random(10000000000, 99999999999)
\set n7 random(10000000000, 99999999999)
\set n8 random(10000000000, 99999999999)
\set n9 random(10000000000, 99999999999)
\set p0 random(10000000000, 99999999999)
\set p1 random(10000000000, 99999999999)
\set p2 random(10000000000, 99999999999)
\set p3 random(10000000000, 99999999999)
\set p4 random(10000000000, 99999999999)
BEGIN;
UPDATE sbtest1 SET k = k + 1 WHERE id = :indexed;
UPDATE sbtest1 SET c = concat(
    cast(:c0 as char(11)), '-', cast(:c1 as char(11)), '-', cast(:c2 as char(11)), '-', cast(:c3 as char(11)), '-',
    cast(:c4 as char(11)), '-', cast(:c5 as char(11)), '-', cast(:c6 as char(11)), '-', cast(:c7 as char(11)), '-',
    cast(:c8 as char(11)), '-', cast(:c9 as char(11)))
  WHERE id = :changed;
DELETE FROM sbtest1 WHERE id = :renewed;
INSERT INTO sbtest1 (id, k, c, pad) VALUES
  (:renewed, :k, concat(
    cast(:n0 as char(11)), '-', cast(:n1 as char(11)), '-', cast(:n2 as char(11)), '-', cast(:n3 as char(11)), '-',
    cast(:n4 as char(11)), '-', cast(:n5 as char(11)), '-', cast(:n6 as char(11)), '-', cast(:n7 as char(11)), '-',
    cast(:n8 as char(11)), '-', cast(:n9 as char(11))), concat(
    cast(:p0 as char(11)), '-', cast(:p1 as char(11)), '-', cast(:p2 as char(11)), '-', cast(:p3 as char(11)), '-',
    cast(:p4 as char(11))));
COMMIT;

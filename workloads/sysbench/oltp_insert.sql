-- oltp_insert of sysbench 1.0 with its defaults, for a table of 10,000 * :scale rows
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
INSERT INTO sbtest1 (k, c, pad) VALUES
  (:k, concat(
    cast(:n0 as char(11)), '-', cast(:n1 as char(11)), '-', cast(:n2 as char(11)), '-', cast(:n3 as char(11)), '-',
    cast(:n4 as char(11)), '-', cast(:n5 as char(11)), '-', cast(:n6 as char(11)), '-', cast(:n7 as char(11)), '-',
    cast(:n8 as char(11)), '-', cast(:n9 as char(11))), concat(
    cast(:p0 as char(11)), '-', cast(:p1 as char(11)), '-', cast(:p2 as char(11)), '-', cast(:p3 as char(11)), '-',
    cast(:p4 as char(11))));

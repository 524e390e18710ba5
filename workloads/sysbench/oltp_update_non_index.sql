-- oltp_update_non_index of sysbench 1.0 with its defaults, for a table of 10,000 * :scale rows
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
UPDATE sbtest1 SET c = concat(
    cast(:c0 as char(11)), '-', cast(:c1 as char(11)), '-', cast(:c2 as char(11)), '-', cast(:c3 as char(11)), '-',
    cast(:c4 as char(11)), '-', cast(:c5 as char(11)), '-', cast(:c6 as char(11)), '-', cast(:c7 as char(11)), '-',
    cast(:c8 as char(11)), '-', cast(:c9 as char(11)))
  WHERE id = :changed;

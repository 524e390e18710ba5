-- The tables of pgbench with their rows, for define = { scale = N } up to 10,000: about 16 MB a unit. In every dialect;
-- pgbench -i makes the keys later and pads less in other databases than PostgreSQL.
create table digits (d integer not null);
insert into digits values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
create table pgbench_branches (bid integer not null primary key, bbalance integer, filler char(88));
create table pgbench_tellers (tid integer not null primary key, bid integer, tbalance integer, filler char(84));
create table pgbench_accounts (aid integer not null primary key, bid integer, abalance integer, filler char(84));
create table pgbench_history (tid integer, bid integer, aid integer, delta integer, mtime timestamp, filler char(22));
insert into pgbench_branches (bid, bbalance)
  select n, 0
  from (select 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d as n from digits a, digits b, digits c, digits e) as numbers
  where n <= :scale;
insert into pgbench_tellers (tid, bid, tbalance)
  select 10 * (bid - 1) + d + 1, bid, 0 from pgbench_branches, digits;
insert into pgbench_accounts (aid, bid, abalance, filler)
  select 100000 * (bid - 1) + 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d, bid, 0, ''
  from pgbench_branches, digits f, digits e, digits c, digits b, digits a;

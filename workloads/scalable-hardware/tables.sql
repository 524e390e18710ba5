-- Three tables for define = { scale = N } up to 10,000: wide rows for disks, 10,000 * :scale of them, about 12 MB a unit;
-- 10,000 narrow rows for processors and 1,000 wide ones for networks, which stay in memory.
create table digits (d bigint not null);
insert into digits values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
create table units (u bigint not null);
insert into units
  select u
  from (select a.d + 10 * b.d + 100 * c.d + 1000 * e.d as u from digits a, digits b, digits c, digits e) as numbers
  where u < :scale;
create table disk_rows (id bigint not null primary key, n bigint not null, filler char(250) not null, more_filler char(250) not null,
  third_filler char(250) not null, last_filler char(250) not null);
insert into disk_rows
  select 10000 * u + 1000 * e.d + 100 * c.d + 10 * b.d + a.d, a.d, concat('a', u), concat('b', u), concat('c', u), concat('d', u)
  from units, digits e, digits c, digits b, digits a
  order by 1;
create table processor_rows (id bigint not null primary key, n bigint not null, k bigint not null);
insert into processor_rows
  select 1000 * e.d + 100 * c.d + 10 * b.d + a.d, (1000 * e.d + 100 * c.d + 10 * b.d + a.d) * 7919 % 10007, 10 * b.d + a.d
  from digits e, digits c, digits b, digits a
  order by 1;
create table network_rows (id bigint not null primary key, filler char(250) not null, more_filler char(250) not null,
  third_filler char(250) not null, last_filler char(250) not null);
insert into network_rows
  select 100 * c.d + 10 * b.d + a.d, 'a', 'b', 'c', 'd' from digits c, digits b, digits a order by 1;

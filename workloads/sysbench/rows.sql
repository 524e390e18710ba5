-- 10,000 * :scale rows, for define = { scale = N } up to 10,000: about 2.3 MB a unit. Their digits are drawn from the
-- number of the row: every database has the same rows. The index is made afterwards, as sysbench does.
create table digits (d bigint not null);
insert into digits values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
create table units (u bigint not null);
insert into units
  select u
  from (select a.d + 10 * b.d + 100 * c.d + 1000 * e.d as u from digits a, digits b, digits c, digits e) as numbers
  where u < :scale;
insert into sbtest1 (k, c, pad)
  select n * 2654435761 % 4294967311 % (10000 * :scale) + 1,
  concat(
    (n * 84213569879) % 90000000000 + 10000000000, '-', (n * 78345623489) % 90000000000 + 10000000000, '-',
    (n * 69123456803) % 90000000000 + 10000000000, '-', (n * 58123457617) % 90000000000 + 10000000000, '-',
    (n * 47123459521) % 90000000000 + 10000000000, '-', (n * 36123457807) % 90000000000 + 10000000000, '-',
    (n * 25123456981) % 90000000000 + 10000000000, '-', (n * 14123458559) % 90000000000 + 10000000000, '-',
    (n * 81234567917) % 90000000000 + 10000000000, '-', (n * 72345678907) % 90000000000 + 10000000000),
  concat(
    (n * 63456789047) % 90000000000 + 10000000000, '-', (n * 54567890129) % 90000000000 + 10000000000, '-',
    (n * 45678901237) % 90000000000 + 10000000000, '-', (n * 34567890161) % 90000000000 + 10000000000, '-',
    (n * 83456789033) % 90000000000 + 10000000000)
  from (
    select 10000 * u + 1000 * e.d + 100 * c.d + 10 * b.d + a.d + 1 as n
    from units, digits e, digits c, digits b, digits a
  ) as numbers
  order by n;
create index k_1 on sbtest1 (k);

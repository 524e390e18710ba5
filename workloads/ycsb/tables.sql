-- The table of YCSB with 1,000 * :scale records, for define = { scale = N } up to 100,000: about 1.2 MB a unit. Every
-- database has the same rows.
create table digits (d bigint not null);
insert into digits values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
create table units (u bigint not null);
insert into units
  select u
  from (
    select a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d as u
    from digits a, digits b, digits c, digits e, digits f
  ) as numbers
  where u < :scale;
create table usertable (
  ycsb_key varchar(255) not null primary key,
  field0 text, field1 text, field2 text, field3 text, field4 text,
  field5 text, field6 text, field7 text, field8 text, field9 text
);
insert into usertable
  select concat('user', 1000000000 + n),
    concat(g0, g1, g2, g3, g4, g5, g6, g7, g8, '0'),
    concat(g1, g2, g3, g4, g5, g6, g7, g8, g0, '1'),
    concat(g2, g3, g4, g5, g6, g7, g8, g0, g1, '2'),
    concat(g3, g4, g5, g6, g7, g8, g0, g1, g2, '3'),
    concat(g4, g5, g6, g7, g8, g0, g1, g2, g3, '4'),
    concat(g5, g6, g7, g8, g0, g1, g2, g3, g4, '5'),
    concat(g6, g7, g8, g0, g1, g2, g3, g4, g5, '6'),
    concat(g7, g8, g0, g1, g2, g3, g4, g5, g6, '7'),
    concat(g8, g0, g1, g2, g3, g4, g5, g6, g7, '8'),
    concat(g0, g1, g2, g3, g4, g5, g6, g7, g8, '9')
  from (
    select n,
      (n * 84213569879) % 90000000000 + 10000000000 as g0, (n * 78345623489) % 90000000000 + 10000000000 as g1,
      (n * 69123456803) % 90000000000 + 10000000000 as g2, (n * 58123457617) % 90000000000 + 10000000000 as g3,
      (n * 47123459521) % 90000000000 + 10000000000 as g4, (n * 36123457807) % 90000000000 + 10000000000 as g5,
      (n * 25123456981) % 90000000000 + 10000000000 as g6, (n * 14123458559) % 90000000000 + 10000000000 as g7,
      (n * 81234567917) % 90000000000 + 10000000000 as g8
    from (select 1000 * u + 100 * c.d + 10 * b.d + a.d as n from units, digits c, digits b, digits a) as numbers
  ) as records
  order by n;

-- The relations of AS3AP with 10,000 * :scale rows each, for define = { scale = N } up to 5,000: about 7 MB a unit with
-- their indexes. Values come from the number of the row: every database has the same.
create table digits (d bigint not null);
insert into digits values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
create table units (u bigint not null);
insert into units
  select u
  from (select a.d + 10 * b.d + 100 * c.d + 1000 * e.d as u from digits a, digits b, digits c, digits e) as numbers
  where u < :scale;
-- Each number, and how much of a text the row has in each relation.
create table numbers (
  n bigint not null primary key, cut integer not null, cut_hundred integer not null, cut_tenth integer not null
);
insert into numbers
  select n, n % 21, n % 100 % 20, n % (1000 * :scale) % 21
  from (
    select 10000 * u + 1000 * e.d + 100 * c.d + 10 * b.d + a.d as n
    from units, digits e, digits c, digits b, digits a
  ) as all_numbers
  order by n;
create table tiny (col_key bigint not null);
insert into tiny values (0);
create table uniques (
  col_key bigint not null primary key, col_int bigint not null, col_signed bigint, col_float double precision not null,
  col_double double precision not null, col_decim numeric(18, 2) not null, col_date char(10) not null,
  col_code char(10) not null, col_name char(20) not null, col_address varchar(80) not null
);
create table hundred (
  col_key bigint not null primary key, col_int bigint not null, col_signed bigint, col_float double precision not null,
  col_double double precision not null, col_decim numeric(18, 2) not null, col_date char(10) not null,
  col_code char(10) not null, col_name char(20) not null, col_address varchar(80) not null
);
create table tenpct (
  col_key bigint not null primary key, col_int bigint not null, col_signed bigint, col_float double precision not null,
  col_double double precision not null, col_decim numeric(18, 2) not null, col_date char(10) not null,
  col_code char(10) not null, col_name char(20) not null, col_address varchar(80) not null
);
create table updates (
  col_key bigint not null primary key, col_int bigint not null, col_signed bigint, col_float double precision not null,
  col_double double precision not null, col_decim numeric(18, 2) not null, col_date char(10) not null,
  col_code char(10) not null, col_name char(20) not null, col_address varchar(80) not null
);
-- Every value but that of dates is unique; keys are sparse.
insert into uniques
  select 1000 + (n * 387420489) % 1000000007, (n * 472881881 + 17) % 1000000007,
    (n * 654188429) % 1000000007 - 500000000, (n * 223606797) % 1000000007 - 500000000,
    2 * ((n * 271828183) % 1000000007) - 1000000007, 2 * ((n * 314159269) % 1000000007) - 1000000007,
    concat(1900 + n % 97, '-', 10 + n % 3, '-', 10 + n % 19),
    case n when 1 then 'BENCHMARKS' else concat(1000000000 + (n * 179424673) % 1000000007, '') end,
    case n when 1 then 'THE+ASAP+BENCHMARKS+' else concat('NUMBER+OF+', 1000000000 + (n * 179424673) % 1000000007) end,
    case n when 1 then 'SILICON VALLEY' else concat(1000000000 + (n * 141421357) % 1000000007,
      substr('UNIVERSITY OF ILLINOIS AT CHICAGO, COMPUTER SCIENCE DEPARTMENT, BOX 4348', 1, cut)) end
  from numbers order by 1;
-- Every column but the key has a hundred values, which go together.
insert into hundred
  select n, n % 100, 10000000 * (n % 100) - 500000000, 10000000 * (n % 100) - 500000000,
    20000000 * (n % 100) - 1000000000, 20000000 * (n % 100) - 1000000000,
    concat(1900 + n % 100, '-', 10 + n % 2, '-', 10 + n % 20),
    case n % 100 when 1 then 'BENCHMARKS' else concat(1000000000 + n % 100, '') end,
    case n % 100 when 1 then 'THE+ASAP+BENCHMARKS+' else concat('NUMBER+OF+', 1000000000 + n % 100) end,
    case n % 100 when 1 then 'SILICON VALLEY' else concat(1000000000 + n % 100,
      substr('UNIVERSITY OF ILLINOIS AT CHICAGO, COMPUTER SCIENCE DEPARTMENT, BOX 4348', 1, cut_hundred)) end
  from numbers order by 1;
-- A tenth of the values is unique; of ten names each has a tenth of the rows.
insert into tenpct
  select n, (m * 472881881 + 17) % 1000000007, (m * 654188429) % 1000000007 - 500000000,
    (m * 223606797) % 1000000007 - 500000000, 2 * ((m * 271828183) % 1000000007) - 1000000007,
    2 * ((m * 314159269) % 1000000007) - 1000000007, concat(1900 + m % 97, '-', 10 + m % 3, '-', 10 + m % 19),
    case m when 1 then 'BENCHMARKS' else concat(1000000000 + (m * 179424673) % 1000000007, '') end,
    case n % 10 when 1 then 'THE+ASAP+BENCHMARKS+' else concat('NUMBER+OF+', 1000000000 + n % 10) end,
    case m when 1 then 'SILICON VALLEY' else concat(1000000000 + (m * 141421357) % 1000000007,
      substr('UNIVERSITY OF ILLINOIS AT CHICAGO, COMPUTER SCIENCE DEPARTMENT, BOX 4348', 1, cut_tenth)) end
  from (select n, n % (1000 * :scale) as m, cut_tenth from numbers) as both_numbers order by 1;
-- As uniques, but keys are dense, with 10,000 left free in the middle.
insert into updates
  select n + case when n >= 5000 * :scale then 10000 else 0 end, (n * 7919) % (10000 * :scale),
    (n * 654188429) % 1000000007 - 500000000, (n * 223606797) % 1000000007 - 500000000,
    2 * ((n * 271828183) % 1000000007) - 1000000007, 2 * ((n * 314159269) % 1000000007) - 1000000007,
    concat(1900 + n % 97, '-', 10 + n % 3, '-', 10 + n % 19),
    case n when 1 then 'BENCHMARKS' else concat(1000000000 + (n * 179424673) % 1000000007, '') end,
    case n when 1 then 'THE+ASAP+BENCHMARKS+' else concat('NUMBER+OF+', 1000000000 + (n * 179424673) % 1000000007) end,
    case n when 1 then 'SILICON VALLEY' else concat(1000000000 + (n * 141421357) % 1000000007,
      substr('UNIVERSITY OF ILLINOIS AT CHICAGO, COMPUTER SCIENCE DEPARTMENT, BOX 4348', 1, cut)) end
  from numbers order by 1;
create unique index uniques_code on uniques (col_code);
create index hundred_code on hundred (col_code);
create index tenpct_code on tenpct (col_code);
create index tenpct_name on tenpct (col_name);
create index tenpct_signed on tenpct (col_signed);
create index tenpct_int on tenpct (col_int);
create index updates_code on updates (col_code);
create index updates_int on updates (col_int);

-- The table of sysbench; rows.sql fills it.
create table sbtest1 (
  id integer not null auto_increment,
  k integer default 0 not null,
  c char(120) default '' not null,
  pad char(60) default '' not null,
  primary key (id)
);

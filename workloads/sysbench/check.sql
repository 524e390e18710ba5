-- Whatever the scripts do, every row is whole.
select count(*) from sbtest1 where length(c) <> 119 or length(pad) <> 59;

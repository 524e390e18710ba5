-- No row is gone, and none is torn.
select count(*) from disk_rows;
select count(*) from disk_rows where filler is null or substr(filler, 1, 1) <> 'a' or substr(last_filler, 1, 1) <> 'd';
select count(*), sum(n) from processor_rows;
select count(*) from network_rows;

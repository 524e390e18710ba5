-- No record that was loaded is gone, and every record is whole.
select count(*) from usertable where ycsb_key < concat('user', 1000000000 + 1000 * :scale);
select count(*) from usertable where length(ycsb_key) <> 14 or length(field0) <> 100 or length(field9) <> 100;

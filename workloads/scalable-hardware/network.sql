-- Bound by the network: a megabyte of answer from memory.
select * from network_rows;

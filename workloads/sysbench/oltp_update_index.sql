-- oltp_update_index of sysbench 1.0 with its defaults, for a table of 10,000 * :scale rows
\set indexed random(1, 10000 * :scale)
UPDATE sbtest1 SET k = k + 1 WHERE id = :indexed;

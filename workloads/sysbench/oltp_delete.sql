-- oltp_delete of sysbench 1.0 with its defaults, for a table of 10,000 * :scale rows
\set id random(1, 10000 * :scale)
DELETE FROM sbtest1 WHERE id = :id;

-- Reads a record, the likelier the later it came: those that this client inserted, then those that were loaded.
\set back random_zipfian(1, 1000 * :scale, 1.001)
\set own :client_id / 4096
\if :back <= :own
\set id 1000000000 + 1000 * :scale + :client_id - 4096 * :back
\else
\set id 1000000000 + 1000 * :scale - (:back - :own)
\endif
SELECT * FROM usertable WHERE ycsb_key = concat('user', cast(:id as char(10)));

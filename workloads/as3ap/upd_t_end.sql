-- Appends a row behind all keys, changes it, and deletes it.
\set key 10000 * :scale + 20000 + :client_id
BEGIN;
insert into updates values (:key, 50005, 50005, 50005.0, 50005.0, 50005.0, '1988-01-01', 'CONTROLLER',
  'ALICE IN WONDERLAND', 'UNIVERSITY OF ILLINOIS AT CHICAGO');
update updates set col_signed = -1 where col_key = :key;
delete from updates where col_key = :key;
END;

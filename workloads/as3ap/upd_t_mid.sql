-- Appends a row in the middle of the keys, changes it, and deletes it.
\set key 5000 * :scale + :client_id
BEGIN;
insert into updates values (:key, 50005, 50005, 50005.0, 50005.0, 50005.0, '1988-01-01', 'CONTROLLER',
  'ALICE IN WONDERLAND', 'UNIVERSITY OF ILLINOIS AT CHICAGO');
update updates set col_signed = 50006 where col_key = :key;
delete from updates where col_key = :key;
END;

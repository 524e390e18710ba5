-- Adds a record behind all others. Each client counts its own in :client_id, by 4096, the most clients there can be.
\set a random(1000000000000000000, 9000000000000000000)
\set b random(1000000000000000000, 9000000000000000000)
\set c random(1000000000000000000, 9000000000000000000)
\set d random(1000000000000000000, 9000000000000000000)
\set e random(1000000000000000000, 9000000000000000000)
\set f random(10000, 99999)
\set id 1000000000 + 1000 * :scale + :client_id
\set client_id :client_id + 4096
INSERT INTO usertable (ycsb_key, field0, field1, field2, field3, field4, field5, field6, field7, field8, field9)
  VALUES (concat('user', cast(:id as char(10))), concat(
    cast(:a as char(19)), cast(:b as char(19)), cast(:c as char(19)), cast(:d as char(19)), cast(:e as char(19)),
    cast(:f as char(5))),
  concat(
    cast(:b as char(19)), cast(:c as char(19)), cast(:d as char(19)), cast(:e as char(19)), cast(:a as char(19)),
    cast(:f as char(5))),
  concat(
    cast(:c as char(19)), cast(:d as char(19)), cast(:e as char(19)), cast(:a as char(19)), cast(:b as char(19)),
    cast(:f as char(5))),
  concat(
    cast(:d as char(19)), cast(:e as char(19)), cast(:a as char(19)), cast(:b as char(19)), cast(:c as char(19)),
    cast(:f as char(5))),
  concat(
    cast(:e as char(19)), cast(:a as char(19)), cast(:b as char(19)), cast(:c as char(19)), cast(:d as char(19)),
    cast(:f as char(5))),
  concat(
    cast(:f as char(5)), cast(:a as char(19)), cast(:b as char(19)), cast(:c as char(19)), cast(:d as char(19)),
    cast(:e as char(19))),
  concat(
    cast(:f as char(5)), cast(:b as char(19)), cast(:c as char(19)), cast(:d as char(19)), cast(:e as char(19)),
    cast(:a as char(19))),
  concat(
    cast(:f as char(5)), cast(:c as char(19)), cast(:d as char(19)), cast(:e as char(19)), cast(:a as char(19)),
    cast(:b as char(19))),
  concat(
    cast(:f as char(5)), cast(:d as char(19)), cast(:e as char(19)), cast(:a as char(19)), cast(:b as char(19)),
    cast(:c as char(19))),
  concat(
    cast(:f as char(5)), cast(:e as char(19)), cast(:a as char(19)), cast(:b as char(19)), cast(:c as char(19)),
    cast(:d as char(19))));

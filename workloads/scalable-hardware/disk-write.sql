-- Bound by writes: a row anywhere, read, changed and committed.
\set id random(0, 10000 * :scale - 1)
update disk_rows set n = n + 1 where id = :id;

-- Bound by reads: one wide row anywhere.
\set id random(0, 10000 * :scale - 1)
select n, filler, more_filler from disk_rows where id = :id;

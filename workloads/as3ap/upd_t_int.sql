-- Changes what an index of numbers is over, and back.
\set key random(2, 4999)
BEGIN;
update updates set col_int = col_int + 50015 where col_key = :key;
update updates set col_int = col_int - 50015 where col_key = :key;
END;

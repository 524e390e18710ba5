-- Changes a thousand rows that follow each other.
\set key random(0, 4000)
update updates set col_signed = col_signed + 1 where col_key between :key and :key + 999;

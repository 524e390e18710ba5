-- Appends a thousand rows, and deletes them.
\set base 1000000000 + 1000 * :client_id
BEGIN;
insert into updates
  select col_key + :base, col_int, col_signed, col_float, col_double, col_decim, col_date, col_code, col_name, col_address
  from hundred where col_key < 1000;
delete from updates where col_key between :base and :base + 999;
END;

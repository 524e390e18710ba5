\set low random(-500000000, 490000000)
select col_key, col_int, col_signed, col_code, col_double, col_name from tenpct where col_signed between :low and :low + 1000000;

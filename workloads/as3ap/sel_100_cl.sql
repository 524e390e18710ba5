select col_key, col_int, col_signed, col_code, col_double, col_name from updates where col_key <= 100;

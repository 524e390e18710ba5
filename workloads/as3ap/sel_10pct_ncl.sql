select col_key, col_int, col_signed, col_code, col_double, col_name from tenpct where col_name = 'THE+ASAP+BENCHMARKS+';

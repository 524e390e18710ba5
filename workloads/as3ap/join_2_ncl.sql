select u.col_signed, u.col_name, h.col_signed, h.col_name
  from uniques u, hundred h where u.col_code = h.col_code and u.col_code = 'BENCHMARKS';

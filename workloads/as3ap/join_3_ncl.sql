select u.col_signed, u.col_date, h.col_signed, h.col_date, t.col_signed, t.col_date
  from uniques u, hundred h, tenpct t where u.col_code = h.col_code and u.col_code = t.col_code and u.col_code = 'BENCHMARKS';

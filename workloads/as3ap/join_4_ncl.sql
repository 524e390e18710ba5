select u.col_date, h.col_date, t.col_date, p.col_date
  from uniques u, hundred h, tenpct t, updates p
  where u.col_code = h.col_code and u.col_code = t.col_code and u.col_code = p.col_code and u.col_code = 'BENCHMARKS';

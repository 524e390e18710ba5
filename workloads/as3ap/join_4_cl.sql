select u.col_date, h.col_date, t.col_date, p.col_date
  from uniques u, hundred h, tenpct t, updates p
  where u.col_key = h.col_key and u.col_key = t.col_key and u.col_key = p.col_key and u.col_key = 1000;

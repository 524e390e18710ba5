select u.col_signed, u.col_date, h.col_signed, h.col_date, t.col_signed, t.col_date
  from uniques u, hundred h, tenpct t where u.col_key = h.col_key and u.col_key = t.col_key and u.col_key = 1000;

select u.col_signed, u.col_name, h.col_signed, h.col_name
  from uniques u, hundred h where u.col_key = h.col_key and u.col_key = 1000;

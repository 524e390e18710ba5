select u.col_signed, u.col_name, h.col_signed, h.col_name
  from uniques u, hundred h where u.col_address = h.col_address and u.col_address = 'SILICON VALLEY';

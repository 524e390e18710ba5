select avg(col_signed), min(col_signed), max(col_signed), max(col_date), min(col_date),
    count(distinct col_name), count(col_name), col_code, col_int
  from tenpct where col_decim > 980000000 group by col_code, col_int;

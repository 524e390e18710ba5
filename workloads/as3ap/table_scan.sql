select * from uniques where col_int + 0 = 1;
